"""A relay where a server runs: many TCP connections over one stdin and stdout.

`ssh.forward.container_relay` is the other side. Both sides send frames, each a head (kind: 1 byte,
stream: 4, count: 4, big-endian) and for OPEN, LISTEN and DATA `count` bytes, which are JSON but for
DATA. The other side numbers its streams and listeners, and never uses a number twice; those of
connections that a listener accepted begin at `ACCEPTED_FROM`.

    OPEN    to the relay    [CREDIT, HOST, PORT] or [CREDIT, PATH]: connect; answered by OPENED or
                            REFUSED, of which `count` says why TLS is refused
    DATA    both ways       at most the credit that the receiver gave
    CREDIT  both ways       `count` more bytes may be sent on this stream
    END     both ways       no more DATA follows; the other direction goes on
    CLOSE   both ways       the stream is over: in order after END, else with a reset
    LISTEN  to the relay    [PORT] of the loopback or [PATH], [PATH, true] in a new folder of its
                            own: listen; answered by OPENED with the port, or REFUSED
    ACCEPTED  from the relay  a connection to the listener `count`; CREDIT and then DATA may follow

The relay ends when its stdin does.
"""

import errno
import json
import os
import selectors
import socket
import struct
from typing import Any, Dict, List, Optional

OPEN, OPENED, REFUSED, DATA, CREDIT, END, CLOSE, LISTEN, ACCEPTED = range(1, 10)
HEAD = struct.Struct(">BII")
ACCEPTED_FROM = 1 << 31

_PIECE = 64 << 10
_OUTPUT_LIMIT = 1 << 20
_READ, _WRITE = selectors.EVENT_READ, selectors.EVENT_WRITE


class _TargetConnection:
    """One connection to the target, or one that a listener accepted (`sock`)."""

    def __init__(
        self,
        relay: "_RelayServer",
        number: int,
        credit: int,
        addresses: List[Any],
        sock: Any = None,
    ) -> None:
        self.relay = relay
        self.number = number
        self.credit = credit
        self.kept = bytearray()
        self.connected = sock is not None
        self.awaits = _WRITE  # until it is connected
        self.ended = False
        self.closing = False
        self.finished = False
        self.watched = 0
        self.addresses = addresses
        if sock is None:
            self.begin()
        else:
            self.sock = sock
            self.prepare()

    def begin(self) -> None:
        """Connect to the next address, or refuse: a name may have several."""
        while self.addresses:
            family, kind, protocol, _, address = self.addresses.pop(0)
            self.sock = socket.socket(family, kind, protocol)
            self.prepare()
            if self.sock.connect_ex(address) in (0, errno.EINPROGRESS):
                return
            if self.addresses:
                self.sock.close()
        self.leave(REFUSED)

    def prepare(self) -> None:
        self.sock.setblocking(False)
        if self.sock.family in (socket.AF_INET, socket.AF_INET6):
            self.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def leave(self, last_frame: int = 0, why: int = 0) -> None:
        """Close the socket, and send a last frame unless it is 0."""
        if last_frame:
            self.relay.frame(last_frame, self.number, why)
        self.watch(0)
        self.sock.close()
        self.relay.streams.pop(self.number, None)

    def watch(self, events: int) -> None:
        selector = self.relay.selector
        if events == self.watched:
            return
        if not self.watched:
            selector.register(self.sock, events, self.ready)
        elif events:
            selector.modify(self.sock, events, self.ready)
        else:
            selector.unregister(self.sock)
        self.watched = events

    def update(self) -> None:
        if self.number not in self.relay.streams:
            return
        if self.closing and not self.kept:
            self.leave()
            return
        if not self.connected:
            self.watch(self.awaits)
            return
        reads = self.credit > 0 and not self.finished and not self.relay.congested()
        if reads and self.relay.tls is not None and self.sock.pending():
            self.read()  # the rest of a piece that TLS has taken from the socket
            self.update()
            return
        self.watch((_READ if reads else 0) | (_WRITE if self.kept else 0))

    def ready(self, events: int) -> None:
        if self.number not in self.relay.streams:
            return
        if not self.connected:
            self.connect()
        elif events & _WRITE and self.kept:
            self.flush()
        if events & _READ and self.watched & _READ and self.number in self.relay.streams:
            self.read()
        self.update()

    def connect(self) -> None:
        if self.sock.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR):
            self.watch(0)
            if self.addresses:
                self.sock.close()
            self.begin()
        elif self.relay.tls is None or self.is_secure(self.relay.tls):
            self.connected = True
            self.relay.frame(OPENED, self.number)
            self.flush()

    def is_secure(self, tls: Any) -> bool:
        """Begin TLS, or go on with that; return whether the server has proved its certificate."""
        try:
            if not hasattr(self.sock, "do_handshake"):
                self.watch(0)
                self.sock = tls.context.wrap_socket(self.sock, do_handshake_on_connect=False)
            self.sock.do_handshake()
            why = tls.refusal(self.sock)
        except self.relay.blocked as wants:
            self.awaits = _READ if isinstance(wants, tls.wants_to_read) else _WRITE
            return False
        except OSError as error:
            why = tls.why(error) or tls.no_tls
        if why:
            self.leave(REFUSED, why)
        return not why

    def read(self) -> None:
        try:
            data = self.sock.recv(min(self.credit, _PIECE))
        except self.relay.blocked:
            return
        except OSError as error:
            # In TLS 1.3 the server tells only now that it wants a certificate.
            why = 0 if self.relay.tls is None else self.relay.tls.why(error)
            self.leave(REFUSED if why else CLOSE, why)
            return
        if data:
            self.credit -= len(data)
            self.relay.frame(DATA, self.number, len(data), data)
            return
        self.finished = True
        self.relay.frame(END, self.number)

    def flush(self) -> None:
        """Write waiting data to the target, then the end."""
        try:
            sent = self.sock.send(memoryview(self.kept)[: 4 * _PIECE]) if self.kept else 0
        except self.relay.blocked:
            return
        except OSError:
            self.leave(CLOSE)
            return
        if sent:
            del self.kept[:sent]
            self.relay.frame(CREDIT, self.number, sent)
        if self.ended and not self.kept:
            self.end_target()

    def end_target(self) -> None:
        try:
            socket.socket.shutdown(self.sock, socket.SHUT_WR)  # that of TLS ends both directions
        except OSError:
            self.leave(CLOSE)

    def take(self, data: bytes) -> None:
        """Add data for the target, and write what it takes at once."""
        self.kept += data
        if self.connected:
            self.flush()
        self.update()

    def end(self) -> None:
        """End our direction when all data is written."""
        self.ended = True
        if self.connected and not self.kept:
            self.end_target()
        self.update()

    def close(self) -> None:
        """Close in order after the end, else with a reset of the target's connection."""
        self.closing = True
        if self.ended:
            self.update()
        else:
            self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            self.leave()


class _Listener:
    """A socket that listens for the other side."""

    def __init__(self, relay: "_RelayServer", number: int, where: List[Any]) -> None:
        self.relay = relay
        self.number = number
        self.path = where[0] if isinstance(where[0], str) else ""
        self.folder = ""
        if not self.path:
            self.sock = socket.socket()
            self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            self.sock.bind(("127.0.0.1", where[0]))
        else:
            if len(where) > 1:
                self.folder = os.path.dirname(self.path)
                os.mkdir(self.folder, 0o700)
            self.sock = socket.socket(socket.AF_UNIX)
            mask = os.umask(0o177)
            try:
                self.sock.bind(self.path)
            finally:
                os.umask(mask)
        self.sock.setblocking(False)
        self.sock.listen(128)
        relay.selector.register(self.sock, _READ, self.ready)
        relay.listeners[number] = self

    def ready(self, _events: int) -> None:
        try:
            accepted, _ = self.sock.accept()
        except OSError:
            return
        relay = self.relay
        relay.last_accepted += 1
        number = relay.last_accepted
        relay.streams[number] = _TargetConnection(relay, number, 0, [], accepted)
        relay.frame(ACCEPTED, number, self.number)

    def close(self) -> None:
        self.relay.selector.unregister(self.sock)
        self.sock.close()
        if self.path:
            os.unlink(self.path)
        if self.folder:
            os.rmdir(self.folder)


class _RelayServer:
    """All streams and listeners, and the frames on stdin and stdout."""

    def __init__(self, tls: Any) -> None:
        self.tls = tls  # `Certificates`, or `None`
        self.blocked = BlockingIOError if tls is None else tls.blocked
        self.selector = selectors.DefaultSelector()
        self.streams: Dict[int, _TargetConnection] = {}
        self.listeners: Dict[int, _Listener] = {}
        self.last_accepted = ACCEPTED_FROM
        self.input = bytearray()
        self.output = bytearray()
        self.writing = False
        self.was_congested = False
        for descriptor in (0, 1):
            os.set_blocking(descriptor, False)
        self.selector.register(0, _READ, self.readable)

    def run(self) -> None:
        while True:
            for key, events in self.selector.select():
                if key.data(events) is False:
                    return
            self.flush()

    def frame(self, kind: int, number: int, count: int = 0, body: bytes = b"") -> None:
        self.output += HEAD.pack(kind, number, count)
        self.output += body

    def congested(self) -> bool:
        """Return whether stdout is so slow that nothing more should be read for it."""
        return len(self.output) > _OUTPUT_LIMIT

    def flush(self, _events: int = 0) -> None:
        while self.output:
            try:
                sent = os.write(1, memoryview(self.output)[: 4 * _PIECE])
            except BlockingIOError:
                break
            del self.output[:sent]
        if self.output and not self.writing:  # stdout is watched only while frames wait for it
            self.selector.register(1, _WRITE, self.flush)
        elif self.writing and not self.output:
            self.selector.unregister(1)
        self.writing = bool(self.output)
        if self.was_congested != self.congested():
            self.was_congested = self.congested()
            for stream in list(self.streams.values()):  # they may leave meanwhile
                stream.update()

    def readable(self, _events: int) -> Optional[bool]:
        """Read frames from stdin; return `False` at its end."""
        try:
            data = os.read(0, 4 * _PIECE)
        except BlockingIOError:
            return None
        if not data:
            return False
        self.input += data
        done = 0
        while len(self.input) - done >= HEAD.size:
            kind, number, count = HEAD.unpack_from(self.input, done)
            body = done + HEAD.size
            end = body + (count if kind in (OPEN, LISTEN, DATA) else 0)
            if len(self.input) < end:
                break
            self.act(kind, number, count, bytes(self.input[body:end]))
            done = end
        del self.input[:done]
        return None

    def act(self, kind: int, number: int, count: int, body: bytes) -> None:
        """Handle a frame; ignore late ones, of a stream that has left."""
        stream = self.streams.get(number)
        if kind == OPEN and stream is None:
            self.open(number, *json.loads(body.decode()))
        elif kind == LISTEN:
            self.listen(number, json.loads(body.decode()))
        elif kind == CLOSE and number in self.listeners:
            self.listeners.pop(number).close()
        if stream is None:
            return
        if kind == DATA:
            stream.take(body)
        elif kind == CREDIT:
            stream.credit += count
            stream.update()
        elif kind == END:
            stream.end()
        elif kind == CLOSE:
            stream.close()

    def open(self, number: int, credit: int, host: str, port: Optional[int] = None) -> None:
        try:
            addresses: List[Any] = [(socket.AF_UNIX, socket.SOCK_STREAM, 0, "", host)]
            if port is not None:
                addresses = list(socket.getaddrinfo(host, port, type=socket.SOCK_STREAM))
            stream = _TargetConnection(self, number, credit, addresses, None)
        except (OSError, ValueError, OverflowError):  # no such name, or no descriptor is left
            self.frame(REFUSED, number)
            return
        if stream.sock.fileno() >= 0:
            self.streams[number] = stream
            stream.update()

    def listen(self, number: int, where: List[Any]) -> None:
        try:
            listener = _Listener(self, number, where)
        except (OSError, ValueError, OverflowError):
            self.frame(REFUSED, number)
        else:
            self.frame(OPENED, number, 0 if listener.path else listener.sock.getsockname()[1])


def main(_argv: List[str], tls: Any = None) -> None:
    """Serve frames on stdin and stdout, with TLS to servers where `tls` is `Certificates`."""
    relay = _RelayServer(tls)
    try:
        relay.run()
    except BrokenPipeError:
        return
    finally:
        for listener in relay.listeners.values():
            listener.close()
