"""The relay's program in a container: many TCP connections over one stdin and stdout.

Its text runs in any Python from 3.6 with only the standard library, so it imports nothing of ours
and uses no newer syntax. `relay.py` is the other side.

Run as `python3 -c TEXT MARKER ADDRESS PORT`; ADDRESS may be a unix socket's path. It prints MARKER
and a newline when it is ready for frames; then both sides send frames, each a head (kind: 1 byte,
stream: 4, count: 4, big-endian) and for DATA `count` bytes. The other side numbers the streams and
never uses a number twice.

    OPEN    to the relay    connect to ADDRESS and PORT; answered by OPENED or REFUSED
    DATA    both ways       at most the credit that the receiver gave; it begins with OPEN's count
    CREDIT  both ways       `count` more bytes may be sent on this stream
    END     both ways       no more DATA follows; the other direction goes on
    CLOSE   both ways       the stream is over: in order after END, else with a reset
    LINE    from the relay  nothing: `srun` passes output on by lines, and this head ends one

The relay ends when its stdin does.
"""
# ruff: noqa: UP006, UP035, UP045 - Python 3.6 has no newer form of these types

import errno
import os
import selectors
import socket
import struct
import sys
from typing import Any, Dict, Optional

OPEN, OPENED, REFUSED, DATA, CREDIT, END, CLOSE, LINE = range(1, 9)
HEAD = struct.Struct(">BII")

_LINE_END = HEAD.pack(LINE, 0, ord("\n"))
_PIECE = 64 << 10
_OUTPUT_LIMIT = 1 << 20
_READ, _WRITE = selectors.EVENT_READ, selectors.EVENT_WRITE


class _TargetConnection:
    """One connection to the target."""

    def __init__(self, relay: "_RelayServer", number: int, credit: int) -> None:
        self.relay = relay
        self.number = number
        self.credit = credit
        self.kept = bytearray()
        self.connected = False
        self.ended = False
        self.closing = False
        self.finished = False
        self.watched = 0
        family, kind, protocol, _, address = relay.address
        self.sock = socket.socket(family, kind, protocol)
        self.sock.setblocking(False)
        if relay.over_tcp:
            self.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        state = self.sock.connect_ex(address)
        if state not in (0, errno.EINPROGRESS):
            self.leave(REFUSED)

    def leave(self, last_frame: int = 0) -> None:
        """Close the socket, and send a last frame unless it is 0."""
        if last_frame:
            self.relay.frame(last_frame, self.number)
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
            self.watch(_WRITE)
            return
        reads = self.credit > 0 and not self.finished and not self.relay.congested()
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
            self.leave(REFUSED)
            return
        self.connected = True
        self.relay.frame(OPENED, self.number)
        self.flush()

    def read(self) -> None:
        try:
            data = self.sock.recv(min(self.credit, _PIECE))
        except BlockingIOError:
            return
        except OSError:
            self.leave(CLOSE)
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
        except BlockingIOError:
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
            self.sock.shutdown(socket.SHUT_WR)
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


class _RelayServer:
    """All streams, and the frames on stdin and stdout."""

    def __init__(self, address: str, port: int) -> None:
        self.over_tcp = not address.startswith("/")
        self.address: Any = None
        if self.over_tcp:
            self.address = socket.getaddrinfo(address, port, type=socket.SOCK_STREAM)[0]
        elif sys.platform != "win32":  # it runs where the server does
            self.address = (socket.AF_UNIX, socket.SOCK_STREAM, 0, "", address)
        self.selector = selectors.DefaultSelector()
        self.streams: Dict[int, _TargetConnection] = {}
        self.input = bytearray()
        self.output = bytearray()
        self.framed = False
        self.writing = False
        self.was_congested = False
        if sys.platform != "win32":  # it runs in a container
            for descriptor in (0, 1):
                os.set_blocking(descriptor, False)
        self.selector.register(0, _READ, self.readable)

    def run(self) -> None:
        while True:
            for key, events in self.selector.select():
                if key.data(events) is False:
                    return
            if self.framed:
                self.output += _LINE_END
                self.framed = False
            self.flush()

    def frame(self, kind: int, number: int, count: int = 0, body: bytes = b"") -> None:
        self.output += HEAD.pack(kind, number, count)
        self.output += body
        self.framed = True

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
        self.watch_output()
        if self.was_congested != self.congested():
            self.was_congested = self.congested()
            for stream in list(self.streams.values()):  # they may leave meanwhile
                stream.update()

    def watch_output(self) -> None:
        """Watch stdout only while frames wait for it."""
        if self.output and not self.writing:
            self.selector.register(1, _WRITE, self.flush)
        elif self.writing and not self.output:
            self.selector.unregister(1)
        self.writing = bool(self.output)

    def readable(self, _events: int) -> Optional[bool]:
        """Read frames from stdin; return `False` at its end."""
        try:
            data = os.read(0, 4 * _PIECE)
        except BlockingIOError:
            return None
        if not data:
            return False
        self.input += data
        self.take_frames()
        return None

    def take_frames(self) -> None:
        done = 0
        while len(self.input) - done >= HEAD.size:
            kind, number, count = HEAD.unpack_from(self.input, done)
            body = done + HEAD.size
            end = body + (count if kind == DATA else 0)
            if len(self.input) < end:
                break
            self.act(kind, number, count, bytes(self.input[body:end]))
            done = end
        del self.input[:done]

    def act(self, kind: int, number: int, count: int, body: bytes) -> None:
        """Handle a frame; ignore late ones, of a stream that has left."""
        if kind == OPEN:
            self.open(number, count)
            return
        stream = self.streams.get(number)
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

    def open(self, number: int, credit: int) -> None:
        try:
            stream = _TargetConnection(self, number, credit)
        except OSError:  # no file descriptor is left
            self.frame(REFUSED, number)
            return
        if stream.sock.fileno() >= 0:
            self.streams[number] = stream
            stream.update()


def main(marker: str, address: str, port: str) -> None:
    """Serve frames on stdin and stdout."""
    relay = _RelayServer(address, int(port))
    os.write(1, marker.encode() + b"\n")
    try:
        relay.run()
    except BrokenPipeError:
        return


if __name__ == "__main__":
    main(*sys.argv[1:4])
