"""paramiko's transport, made fast and safe; the way of a byte from the browser to Jupyter and back.

A forward has one thread, in `EventLoop.run` (`channels/event_loop.py`), and a connection has one,
the transport's, in `Transport.run` (`transport.py`).

From the browser to Jupyter:

1. Forward's thread: `_Server._accept` (`forward/forwarder.py`) accepts the browser's connection.
   `ConnectionRouter` (`forward/connection_router.py`) gives it a far end: a `TunnelChannel`, or
   the `RelayStream` of a relay, if Jupyter listens on a container's own loopback.
2. Same thread: `SocketBridge._hear` (`forward/socket_bridge.py`) has read the first request's head,
   for `forward/browser_requests.py` to judge. Then `_read` reads up to 256 KiB, never more than the
   channel has room for.
3. Same thread: `TunnelChannel.send` (`channels/tunnel_channel.py`) gives the data to
   `Packetizer.send_payloads` (`packetizer.py`), which encrypts it and writes it to the SSH socket.
   A relay's stream puts a frame's head before it (`forward/container_relay.py`). During a key
   exchange paramiko's own `_send_user_message` waits for its end.
4. On the host: sshd writes it to its TCP connection to Jupyter, or to the relay's stdin. There
   the one thread of `remote/relay.py`, in the container, writes it to Jupyter's socket.

From Jupyter to the browser:

5. On the host: sshd, or the relay and sshd, read Jupyter's socket as far as the windows permit.
6. Transport's thread: `PacketReader.read` (`packetizer.py`) receives up to 1 MiB at once and
   decrypts packet by packet. Data goes to the channel's sink, other messages to paramiko.
7. Same thread: `TunnelChannel._take` counts the window, and `SocketBridge.received` writes to the
   browser's socket, straight from the packet's memory. A relay's frames are taken apart between
   the two.
8. Forward's thread: what the browser did not take at once follows in `SocketBridge._flush`.
   `TunnelChannel._grant` lets the host send more; `ChannelRegistry`
   (`channels/channel_registry.py`) decides how much.

Behind a jump host the connection's socket is one end of a pair; a `SocketBridge` over the jump
host's connection has the other (`connect.py`).

Read `server_socket`, `transport` and `packetizer`; `algorithms` holds choices.
`tests/ssh/test_private_names.py` lists what we rely on.
"""
