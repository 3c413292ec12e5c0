"""The relay into a container: a process that reaches a server on the container's own loopback.

It runs by the engine's `exec`, one process for all connections of a forward: each `exec` costs
0.1 s, and sshd permits ten sessions. `remote.relay` documents the protocol.
"""

from __future__ import annotations

import json
import logging
import shlex
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from jlremote.place.host.addresses import Target
from jlremote.place.host.framing import FromMarker, new_marker
from jlremote.place.host.sudo import SUDO
from jlremote.remote import relay, sending, tls_relay
from jlremote.ssh.channels.event_loop import EventLoop
from jlremote.ssh.channels.session_channel import SessionChannel
from jlremote.ssh.channels.shell_session import SHELL
from jlremote.ssh.connection import Connection
from jlremote.ssh.forward.socket_bridge import SocketBridge
from jlremote.ssh.wire_format import string

_LOG = logging.getLogger("jlremote.ssh")
_COMPLAINT_LIMIT = 2000
_LAST_NUMBER = relay.ACCEPTED_FROM - 1

# A stream's window in bytes, and what the windows of more streams share: a page that reads nothing
# leaves its window's worth of data in this process.
WINDOW = 2 << 20
_SHARED_WINDOWS = 32 << 20
_SMALLEST_WINDOW = 64 << 10

_PLAIN, _TLS = "jlremote.remote.relay", "jlremote.remote.tls_relay"
# Read with this module: an upgrade may bring a program that this process does not understand.
_PROGRAMS = {main: sending.packed(main) for main in (_PLAIN, _TLS)}

_UNPROVED = "the certificate of Jupyter is not proved:"
_TLS_REFUSALS = {
    tls_relay.NO_TLS: f"{_UNPROVED} it does not speak TLS as its own file says",
    tls_relay.NO_FILE: f"{_UNPROVED} its command line, its configuration and Jupyter's folders name"
    " no file with one that can be read",
    tls_relay.OTHER_CERTIFICATE: f"{_UNPROVED} it shows another one than its file has",
    tls_relay.WANTS_CERTIFICATE: f"{_UNPROVED} it asks for one of its clients",
}

Where = Sequence[str | int | bool]
Listens = Callable[[int | None], None]
Accepted = Callable[[int], None]


def window_beside(streams: int) -> int:
    """Return the window in bytes of a new stream beside others."""
    return max(_SMALLEST_WINDOW, min(WINDOW, _SHARED_WINDOWS // (streams + 1)))


def address_of(target: Target) -> tuple[str | int, ...]:
    """Return a target's path, or its host and port."""
    return (target.path,) if target.path else (target.address, target.port)


def _main(target: Target) -> str:
    return _TLS if target.tls_pid else _PLAIN


def relay_argv(target: Target, marker: str) -> tuple[str, ...]:
    """Return the command that reads the relay's program, and prints `marker` before that.

    The target's `relay` is an argv that runs Python 3.6 or later where the server listens, with
    stdin and stdout attached and no terminal, such as `docker exec -i NAME python3`.
    """
    tls = (str(target.tls_pid),) if target.tls_pid else ()
    return (*(target.relay or ()), *sending.boot_argv(_main(target), marker, *tls))


class Relay:
    """A relay process on the host, and the handler of the session in which it runs."""

    def __init__(self, connection: Connection, target: Target, loop: EventLoop) -> None:
        self.loop = loop
        self._connection = connection
        self._target = target
        self._marker = new_marker()
        self._program = FromMarker(self._marker)
        self._streams: dict[int, RelayStream] = {}
        self._listeners: dict[int, tuple[Listens, Accepted]] = {}
        self._last_number = 0
        self._retired = self._lost = False
        self._reads = False  # whether the program is there to read frames
        self._over = False  # whether it has ended, or was told to
        self._begun = False  # whether a frame has come: until then its program may fail
        self._complaint = bytearray()
        self._input = bytearray()
        self._body: RelayStream | None = None
        self._body_left = 0
        self._waiting = bytearray(_PROGRAMS[_main(target)])  # and frames for which there is no room
        self._channel = SessionChannel(connection.transport, self, loop.call, self._note_complaint)
        self._channel.ask_session()

    def leads_to(self, transport: Any, target: Target) -> bool:
        """Return whether the relay may serve one more connection to a target on a transport."""
        same = (self._target.relay, self._target.tls_pid) == (target.relay, target.tls_pid)
        goes_on = not self._over and self._last_number < _LAST_NUMBER
        return same and goes_on and self._connection.transport is transport

    def connect(self, bridge: SocketBridge, target: Target) -> None:
        """Connect to the target's address or path."""
        self._last_number += 1
        window = self._join(self._last_number, bridge, target.path or f"port {target.port}")
        self._send_json(relay.OPEN, (window, *address_of(target)))

    def adopt(self, number: int, bridge: SocketBridge) -> None:
        """Join a connection that a listener accepted."""
        self.send(relay.CREDIT, number, self._join(number, bridge))

    def _join(self, number: int, bridge: SocketBridge, to: str = "") -> int:
        window = window_beside(len(self._streams))
        self._streams[number] = RelayStream(self, number, window, bridge, to)
        bridge.join(self._streams[number])
        return window

    def listen(self, where: Where, listens: Listens, accepted: Accepted) -> int:
        """Listen on a port of the loopback or at a path; return the number for `unlisten`.

        Both functions are called in the transport's thread: the one with the port, 0 for a path,
        and with `None` once nothing listens; the other with a connection to `adopt`.
        """
        self._last_number += 1
        self._listeners[self._last_number] = (listens, accepted)
        self._send_json(relay.LISTEN, where)
        return self._last_number

    def unlisten(self, number: int) -> None:
        if self._listeners.pop(number, None) is not None:
            self.send(relay.CLOSE, number)
            self._end_if_unused()

    @property
    def unused(self) -> bool:
        return not (self._streams or self._listeners)

    def _send_json(self, kind: int, value: Where) -> None:
        body = json.dumps(value).encode()
        self.send(kind, self._last_number, len(body), memoryview(body))

    def room(self) -> int:
        """Return how many bytes may be sent without a wait."""
        return 0 if self._waiting or not self._reads else self._channel.room()

    def send(self, kind: int, number: int, count: int = 0, body: memoryview | None = None) -> None:
        """Send a frame; what the channel has no room for waits."""
        if not self._over:
            self._waiting += relay.HEAD.pack(kind, number, count)
            if body is not None:
                self._waiting += body
            self._flush()

    def _flush(self) -> None:
        room = self._channel.room()
        if self._reads and self._waiting and room > 0:
            with memoryview(self._waiting) as waiting:
                self._channel.send(waiting[:room])
            del self._waiting[:room]

    def retire(self) -> None:
        """End after the last stream."""
        self._retired = True
        self._end_if_unused()

    def leave(self, number: int) -> None:
        """Close a stream. Twice is fine."""
        if self._streams.pop(number, None) is not None:
            self.send(relay.CLOSE, number)
            self._end_if_unused()

    def _end_if_unused(self) -> None:
        if self._retired and self.unused:
            self._over = True
            self._channel.close()

    # The channel's events, in the transport's thread: `ChannelHandler`.

    def opened(self) -> None:
        self.loop.call(self._start)

    def refused(self, reason: str) -> None:
        self._complaint += reason.encode()
        self.ended()

    def received(self, data: memoryview) -> int:
        count = len(data)
        if not self._reads:  # the output of login files
            data = memoryview(self._program.take(bytes(data)))
            if self._program.begun:
                self._reads = True
                self.writable()
        self._begun = self._begun or bool(data)
        self._parse(data)
        return count

    def writable(self) -> None:
        self.loop.call(self._go_on)

    def ended(self) -> None:
        self._over = True
        self.loop.call(self._stop)

    closed = ended

    def lost(self) -> None:
        self._lost = True
        self.ended()

    def _note_complaint(self, data: bytes) -> int:
        if not self._begun:
            self._complaint = (self._complaint + data)[-_COMPLAINT_LIMIT:]
        return 0

    def _parse(self, data: memoryview) -> None:
        while data:
            if self._body_left:
                piece = data[: self._body_left]
                self._body_left -= len(piece)
                if self._body is not None and (taken := self._body.bridge.received(piece)):
                    self._body.consumed(taken)
                data = data[len(piece) :]
                continue
            missing = relay.HEAD.size - len(self._input)
            self._input += data[:missing]
            data = data[missing:]
            if len(self._input) == relay.HEAD.size:
                kind, number, count = relay.HEAD.unpack(self._input)
                self._input.clear()
                if kind == relay.ACCEPTED:
                    self._accept(number, count)
                elif number not in self._listeners:
                    self._act(kind, self._streams.get(number), count)
                elif kind == relay.OPENED:
                    self._listeners[number][0](count)
                elif kind == relay.REFUSED:
                    self._listeners.pop(number)[0](None)

    def _accept(self, number: int, listener: int) -> None:
        known = number >= relay.ACCEPTED_FROM and number not in self._streams
        if known and listener in self._listeners:
            self._listeners[listener][1](number)
        else:
            self.loop.call(lambda: self.send(relay.CLOSE, number))

    def _act(self, kind: int, stream: RelayStream | None, count: int) -> None:
        if kind == relay.DATA:
            self._body, self._body_left = stream, count
        if stream is None:
            return  # it was closed meanwhile
        if kind == relay.DATA:
            stream.announced += count
            if stream.announced > stream.granted:
                self._body = None  # it would fill this process's memory
                if not self._over:
                    _LOG.warning("the relay in the container sent more than it was permitted")
                    self.ended()
        elif kind == relay.OPENED:
            stream.bridge.opened()
        elif kind == relay.REFUSED:
            unheard = f"nothing listens on {stream.to} there"
            stream.bridge.refused(_TLS_REFUSALS.get(count, unheard))
        elif kind == relay.CREDIT:
            stream.credited(count)
        elif kind == relay.END:
            stream.bridge.ended()
        elif kind == relay.CLOSE:
            stream.bridge.closed()

    # In the loop's thread.

    def _start(self) -> None:
        """Start the relay by a script for `sh`: the login shell may have other rules for quotes.

        Nothing follows the line until the marker comes: dash reads ahead, and the program that
        takes its place would miss that input.
        """
        self._channel.request(b"exec", string(SHELL.encode()))
        line = shlex.join(relay_argv(self._target, self._marker))
        # `sudo` gets its password from the shell, which must still run.
        script = f"{line}\nexit\n" if line.startswith(SUDO[0]) else f"exec {line}\n"
        self._channel.send(memoryview(self._connection.with_sudo_password(script.encode())))

    def _go_on(self) -> None:
        self._flush()
        if not self._waiting:
            for stream in list(self._streams.values()):
                stream.bridge.writable()

    def _stop(self) -> None:
        """End all streams: the relay is gone. If it never started, none is tried again."""
        self._channel.close()
        streams, self._streams = self._streams, {}
        listeners, self._listeners = self._listeners, {}
        for listens, _ in listeners.values():
            listens(None)
        for stream in streams.values():
            if self._begun or self._lost:
                stream.bridge.lost()
            else:
                stream.bridge.refused(self._reason())

    def _reason(self) -> str:
        complaint = self._complaint.decode("utf-8", "replace") or self._program.noise
        lines = [line.strip() for line in complaint.split("\n") if line.strip()]
        return f"the relay did not start: {lines[-1] if lines else 'it ended at once'}"


@dataclass(eq=False)
class RelayStream:
    """One connection through the relay; see `FarEnd`.

    `window` is the number of bytes that may be on their way in each direction.
    """

    _relay: Relay
    number: int
    window: int
    bridge: SocketBridge
    to: str = ""  # its port or path there, for an error
    # Sums over the stream's life, each with one writer: the transport's thread and the loop's.
    announced: int = 0  # bytes of DATA that the relay has begun to send
    granted: int = 0
    _credit: int = 0
    _passed_on: int = 0
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def __post_init__(self) -> None:
        self.granted = self._credit = self.window

    def room(self) -> int:
        return min(self._credit, self._relay.room())

    def send(self, data: memoryview) -> None:
        with self._lock:
            self._credit -= len(data)
        self._relay.send(relay.DATA, self.number, len(data), data)

    def send_end(self) -> None:
        self._relay.send(relay.END, self.number)

    def close(self) -> None:
        self._relay.leave(self.number)

    def consumed(self, count: int) -> None:
        with self._lock:
            before = self._passed_on
            self._passed_on += count
        if before < self.window // 4 <= before + count:
            self._relay.loop.call(self._give_credit)

    def _give_credit(self) -> None:
        with self._lock:
            count, self._passed_on = self._passed_on, 0
        self.granted += count
        self._relay.send(relay.CREDIT, self.number, count)

    def credited(self, count: int) -> None:
        """Take a frame of CREDIT, in the transport's thread."""
        with self._lock:
            had_none = self._credit <= 0
            self._credit += count
        if had_none:
            self.bridge.writable()
