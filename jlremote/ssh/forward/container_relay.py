"""The relay into a container: a process that reaches a server on the container's own loopback.

It runs by the engine's `exec`, one process for a forward, whatever the number of its connections:
each `exec` costs 0.1 s, and sshd permits ten sessions. `remote.relay` documents the protocol.
"""

from __future__ import annotations

import json
import logging
import shlex
from collections.abc import Callable, Sequence
from typing import Any

from jlremote.place.host.addresses import Target
from jlremote.place.host.framing import FromMarker, new_marker
from jlremote.place.host.sudo import SUDO
from jlremote.remote import relay, sending, tls_relay
from jlremote.ssh.channels.event_loop import EventLoop
from jlremote.ssh.channels.session_channel import SessionChannel
from jlremote.ssh.channels.shell_session import SHELL
from jlremote.ssh.connection import Connection
from jlremote.ssh.forward.relay_stream import FrameSender, RelayStream
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

_TLS_REFUSALS = {
    tls_relay.NO_TLS: "it does not speak TLS as its own file says",
    tls_relay.NO_FILE: "its command line, its configuration and Jupyter's folders name no file with"
    " one that can be read",
    tls_relay.OTHER_CERTIFICATE: "it shows another one than its file has",
    tls_relay.WANTS_CERTIFICATE: "it asks for one of its clients",
}

Where = Sequence[str | int | bool]
Listens = Callable[[int | None], None]
Accepted = Callable[[int], None]


def window_beside(streams: int) -> int:
    """Return the window in bytes of a new stream beside others."""
    return max(_SMALLEST_WINDOW, min(WINDOW, _SHARED_WINDOWS // (streams + 1)))


def relay_argv(target: Target, marker: str) -> tuple[str, ...]:
    """Return the command that reads the relay's program, and prints `marker` before that.

    The target's `relay` is an argv that runs Python 3.6 or later where the server listens, with
    stdin and stdout attached and no terminal, such as `docker exec -i NAME python3`.
    """
    tls = (str(target.tls_pid),) if target.tls_pid else ()
    return (*(target.relay or ()), *sending.boot_argv(_main(target), marker, *tls))


def _main(target: Target) -> str:
    return _TLS if target.tls_pid else _PLAIN


class Relay:
    """A relay process on the host, and the handler of the session in which it runs."""

    def __init__(self, connection: Connection, target: Target, loop: EventLoop) -> None:
        self._loop = loop
        self._connection = connection
        self._target = target
        self._marker = new_marker()
        self._program = FromMarker(self._marker)
        self._streams: dict[int, RelayStream] = {}
        self._listeners: dict[int, tuple[Listens, Accepted]] = {}
        self._last_number = 0
        self._retired = False
        self._lost = False
        self._begun = False  # whether a frame has come: until then its program may fail
        self._complaint = bytearray()
        self._input = bytearray()
        self._body: RelayStream | None = None
        self._body_left = 0
        self._channel = SessionChannel(connection.transport, self, loop, self._note_complaint)
        self._frames = FrameSender(self._channel, bytearray(_PROGRAMS[_main(target)]))
        self._channel.ask_session()

    def leads_to(self, transport: Any, target: Target) -> bool:
        """Return whether the relay may serve one more connection to a target on a transport."""
        same = (self._target.relay, self._target.tls_pid) == (target.relay, target.tls_pid)
        goes_on = not self._frames.over and self._last_number < _LAST_NUMBER
        return same and goes_on and self._connection.transport is transport

    def connect(self, bridge: SocketBridge, target: Target) -> None:
        """Connect to the target's address or path."""
        self._last_number += 1
        window = self._join(self._last_number, bridge, target.path or f"port {target.port}")
        to = (target.path,) if target.path else (target.address, target.port)
        self._send_json(relay.OPEN, (window, *to))

    def adopt(self, number: int, bridge: SocketBridge) -> None:
        """Join a connection that a listener accepted."""
        self._frames.send(relay.CREDIT, number, self._join(number, bridge))

    def _join(self, number: int, bridge: SocketBridge, to: str = "") -> int:
        window = window_beside(len(self._streams))
        stream = RelayStream(self._frames, number, window, bridge, self._loop, self._leave, to)
        self._streams[number] = stream
        bridge.join(stream)
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
            self._frames.send(relay.CLOSE, number)
            self._end_if_unused()

    @property
    def unused(self) -> bool:
        return not (self._streams or self._listeners)

    def _send_json(self, kind: int, value: Where) -> None:
        body = json.dumps(value).encode()
        self._frames.send(kind, self._last_number, len(body), memoryview(body))

    def retire(self) -> None:
        """End after the last stream."""
        self._retired = True
        self._end_if_unused()

    def _leave(self, stream: RelayStream) -> None:
        if self._streams.pop(stream.number, None) is not None:
            self._frames.send(relay.CLOSE, stream.number)
            self._end_if_unused()

    def _end_if_unused(self) -> None:
        if self._retired and self.unused:
            self._frames.over = True
            self._channel.close()

    # The channel's events, in the transport's thread: `ChannelHandler`.

    def opened(self) -> None:
        self._loop.call(self._start)

    def refused(self, reason: str) -> None:
        self._complaint += reason.encode()
        self.ended()

    def received(self, data: memoryview) -> int:
        count = len(data)
        if not self._frames.ready:  # the output of login files
            data = memoryview(self._program.take(bytes(data)))
            if self._program.begun:
                self._frames.ready = True
                self._loop.call(self._go_on)
        self._begun = self._begun or bool(data)
        self._parse(data)
        return count

    def writable(self) -> None:
        self._loop.call(self._go_on)

    def ended(self) -> None:
        self._frames.over = True
        self._loop.call(self._stop)

    closed = ended

    def lost(self) -> None:
        self._lost = True
        self.ended()

    def _note_complaint(self, data: bytes) -> None:
        if not self._begun:
            self._complaint = (self._complaint + data)[-_COMPLAINT_LIMIT:]

    def _parse(self, data: memoryview) -> None:
        while data:
            if self._body_left:
                piece = data[: self._body_left]
                self._body_left -= len(piece)
                if self._body is not None:
                    self._body.received(piece)
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
                elif number in self._listeners:
                    self._act_on_listener(kind, number, count)
                else:
                    self._act(kind, self._streams.get(number), count)

    def _accept(self, number: int, listener: int) -> None:
        known = number >= relay.ACCEPTED_FROM and number not in self._streams
        if known and listener in self._listeners:
            self._listeners[listener][1](number)
        else:
            self._loop.call(lambda: self._frames.send(relay.CLOSE, number))

    def _act_on_listener(self, kind: int, number: int, port: int) -> None:
        if kind == relay.OPENED:
            self._listeners[number][0](port)
        elif kind == relay.REFUSED:
            self._listeners.pop(number)[0](None)

    def _act(self, kind: int, stream: RelayStream | None, count: int) -> None:
        if kind == relay.DATA:
            self._body, self._body_left = stream, count
        if stream is None:
            return  # it was closed meanwhile
        if kind == relay.DATA:
            stream.announced += count
            if stream.announced > stream.granted:
                self._end_overrun()
        elif kind == relay.OPENED:
            stream.bridge.opened()
        elif kind == relay.REFUSED:
            stream.bridge.refused(_refusal(stream, count))
        elif kind == relay.CREDIT:
            stream.credited(count)
        elif kind == relay.END:
            stream.bridge.ended()
        elif kind == relay.CLOSE:
            stream.bridge.closed()

    def _end_overrun(self) -> None:
        """End a relay that sends more than was granted: it would fill this process's memory."""
        self._body = None
        if not self._frames.over:
            _LOG.warning("the relay in the container sent more than it was permitted")
            self.ended()

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
        self._frames.flush()
        if not self._frames.waiting:
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


def _refusal(stream: RelayStream, why: int) -> str:
    if why in _TLS_REFUSALS:
        return f"the certificate of Jupyter is not proved: {_TLS_REFUSALS[why]}"
    return f"nothing listens on {stream.to} there"
