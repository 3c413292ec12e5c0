"""The forward of a local port: from an accepted connection to its far end. SFTP goes the same way.

Read `forwarder` (the listener), `connection_router` with `waiting_page` (a far end for each
connection, or the wait for one), `confirmation` (the proof after a connection and before its first
byte), `socket_bridge` (the bytes). A container's own loopback is reached
through `relay`, `relay_stream` and `relay_program`, which runs in the container. `sftp` serves
mounts.

Why is no port published? The host reaches a container's bridge address, so a container without `-p`
works, nothing opens on the host, and no other user can take the port first.

How is a rootless container reached? By the relay, through the engine's `exec`: the host is not in
its network. A published port would have to be chosen when the container is created, every user of
the host could connect to it, and after a restart another one may have it. The relay needs Python,
which is wherever Jupyter is, and one of sshd's ten sessions for each forward.

Why does the listener outlive the connection? A page that is open waits and goes on, and no other
program takes the port meanwhile.
"""
