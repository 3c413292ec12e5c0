"""An SSH channel that reports events instead of being waited for.

`paramiko.Channel` is made to be read by a blocked thread: opening one waits in steps of 0.1 s, its
buffer is an array whose front is deleted at O(n), and a window update may be sent from the thread
that alone can end a key exchange, which then waits for itself. This one calls its
`ChannelHandler` from the transport's thread as messages come, and sends from the loop's thread
only.
"""

from __future__ import annotations

import logging
import struct
import threading
import time
from collections.abc import Callable
from typing import Any, Protocol

import paramiko
from paramiko import common

from jlremote.ssh.channels.channel_registry import FIRST_WINDOW, LARGEST_PACKET, ChannelRegistry
from jlremote.ssh.channels.event_loop import Action
from jlremote.ssh.transport.packetizer import PacketReader
from jlremote.ssh.wire_format import string

_DATA = struct.Struct(">BII")
# Bytes beyond the window after which a channel ends; ssh permits a tenth as well.
_GRACE = FIRST_WINDOW // 10
_SIGNALS = {"HUP": 1, "INT": 2, "QUIT": 3, "ILL": 4, "ABRT": 6, "FPE": 8, "KILL": 9, "USR1": 10}
_SIGNALS |= {"SEGV": 11, "USR2": 12, "PIPE": 13, "ALRM": 14, "TERM": 15}

_log = logging.getLogger(__name__)


class ChannelHandler(Protocol):
    """The owner of a channel. All is called from the transport's thread: do not block."""

    def opened(self) -> None: ...
    def refused(self, reason: str) -> None: ...  # no other event follows
    def received(self, data: memoryview) -> int:
        """Return how much of `data` was passed on; report the rest to `consumed` later."""

    def ended(self) -> None: ...  # the far end sends no more; it may still read
    def writable(self) -> None: ...  # there is room again, after `room` was 0
    def closed(self) -> None: ...  # by the far end; earlier data may still be passed on
    def lost(self) -> None: ...  # the connection is gone, and the channel with it


class TunnelChannel:
    """One channel of a connection, with its two windows.

    It sends from one thread, an `EventLoop`'s or that of one script: `call` runs an action there
    soon, and never blocks. Public methods are for that thread, but for `consumed` and `fail`. The
    transport calls those with paramiko's names, which begin with an underscore, and `on_stderr`
    with a session's standard error; it returns how many bytes it kept.
    """

    def __init__(
        self,
        transport: Any,
        handler: ChannelHandler,
        call: Callable[[Action], None],
        on_stderr: Callable[[bytes], int] = lambda _: 0,
    ) -> None:
        self._transport = transport
        self._registry = ChannelRegistry.of(transport)
        self._handler = handler
        self._call = call
        self._on_stderr = on_stderr
        self._reader: PacketReader = transport.packetizer.reader
        self._lock = threading.Lock()
        self._number = self._registry.add(self)
        self._peer = 0  # the far end's number
        self._packet = 0  # bytes of its largest packet
        # Bytes that the far end takes, and those sent, over the channel's life.
        self._allowed = self._sent = 0
        # Our window, and how much of it the far end may still send.
        self._window = self._credit = self._registry.first_window()
        self._unread = 0
        self._since_growth = 0
        self.asked = 0.0  # when the channel was asked for, in seconds of the monotonic clock
        self._granting = self._open = self._failed = self._released = False
        self._awaits_answer = False
        self._close_sent = self._close_received = False

    def ask(self, kind: bytes, details: bytes = b"") -> None:
        """Ask the far end to open the channel; the handler's `opened` or `refused` follows."""
        self.asked = time.monotonic()
        self._awaits_answer = True
        opening = struct.pack(">III", self._number, self._window, LARGEST_PACKET)
        self._send((common.cMSG_CHANNEL_OPEN, string(kind), opening, details))
        if not self._transport.is_active():
            self._unlink()  # registered after the others had been told

    def room(self) -> int:
        """Return how many bytes `send` takes now."""
        return self._allowed - self._sent

    def send(self, data: memoryview) -> None:
        """Send `data`, at most `room()` bytes."""
        self._sent += len(data)
        pieces = (data[at : at + self._packet] for at in range(0, len(data), self._packet))
        kind, peer = common.MSG_CHANNEL_DATA, self._peer
        self._send(*((_DATA.pack(kind, peer, len(piece)), piece) for piece in pieces))

    def send_end(self) -> None:
        self._send((self._head(common.cMSG_CHANNEL_EOF),))

    def request(self, kind: bytes, details: bytes = b"", *, want_reply: bool = False) -> None:
        """Send a request, such as `exec`."""
        head = self._head(common.cMSG_CHANNEL_REQUEST)
        self._send((head, string(kind), bytes((want_reply,)), details))

    def consumed(self, count: int) -> None:
        """Report `count` bytes that `received` kept as passed on; any thread."""
        with self._lock:
            if self._released:
                return
            self._unread -= count
            self._consume(count)
        self._registry.unread(-count)

    def close(self) -> None:
        """Close the channel. Twice is fine."""
        if self._close_sent:
            return
        self._close_sent = True
        if self._open:
            self._send((self._head(common.cMSG_CHANNEL_CLOSE),))
        if self._close_received or not (self._open or self._awaits_answer):
            self._release()

    def fail(self) -> None:
        """End the channel, which alone is to blame: the connection goes on. Any thread."""
        self._failed = True
        self._reader.sinks[self._number] = lambda _data: None
        self._call(self._give_up)

    def _give_up(self) -> None:
        self.close()
        self._handler.lost() if self._open else self._handler.refused("its answer cannot be read")

    def _consume(self, count: int) -> None:
        """Count what was passed on; let the far end send more if need be. Hold the lock."""
        self._since_growth += count
        if self._credit < -_GRACE and not self._failed:
            _log.error("the server sent more than a channel's window")
            self.fail()
        if self._granting or self._window - self._credit - self._unread < self._window // 4:
            return
        self._granting = True
        self._call(self._grant)

    def _grant(self) -> None:
        with self._lock:
            self._granting = False
            if self._since_growth >= self._window // 2:
                self._since_growth = 0
                self._window = self._registry.grown(self._window)
            more = self._window - self._credit - self._unread
            self._credit += max(0, more)
        if more > 0 and not self._close_sent:
            self._send((self._head(common.cMSG_CHANNEL_WINDOW_ADJUST), more.to_bytes(4, "big")))

    def _head(self, kind: bytes) -> bytes:
        return kind + self._peer.to_bytes(4, "big")

    def _send(self, *payloads: tuple[bytes | memoryview, ...]) -> None:
        transport = self._transport
        try:
            if transport.packetizer.send_payloads(payloads):
                return
            for parts in payloads:  # waits for the end of a key exchange
                transport._send_user_message(paramiko.Message(b"".join(parts)))
        except paramiko.SSHException:
            transport.close()  # the key exchange does not end
        except (EOFError, OSError):
            return  # the transport's thread finds the connection broken as well, and reports it

    def _release(self) -> None:
        with self._lock:
            # Both sides may close at once; the number may belong to another channel by then.
            if self._released:
                return
            self._released = True
            unread, self._unread = self._unread, 0
        self._reader.sinks.pop(self._number, None)
        self._reader.windows.pop(self._number, None)
        self._registry.remove(self._number)
        self._registry.unread(-unread)

    # Called by paramiko's transport, from its thread.

    def _set_remote_channel(self, number: int, window: int, packet: int) -> None:
        self._registry.answered(time.monotonic() - self.asked)
        self._peer, self._allowed, self._packet = number, window, packet
        self._open = True
        self._reader.sinks[self._number] = self._take
        self._reader.windows[self._number] = self._widen
        if self._close_sent:  # given up meanwhile: `close` could not name the peer's channel yet
            self._transport.reply(self._head(common.cMSG_CHANNEL_CLOSE))
            return
        self._handler.opened()

    def refuse(self, reason: str) -> None:
        self._close_sent = self._close_received = True
        self._release()
        self._handler.refused(reason)

    def _feed(self, message: Any) -> None:
        if not self._failed:
            self._take(memoryview(message.get_binary()))

    def _take(self, data: memoryview) -> None:
        """Pass data on; called straight from the packet reader where the cipher allows."""
        size = len(data)
        try:
            kept = size - self._handler.received(data)
        except Exception:  # noqa: BLE001 - a container's relay may send anything
            _log.exception("the data of a channel could not be handled; it is closed")
            self.fail()
            return
        self._count(size, kept)

    def _count(self, size: int, kept: int) -> None:
        """Count `size` bytes that came; `kept` of them wait for their reader."""
        if kept:
            self._registry.unread(kept)
        with self._lock:
            self._credit -= size
            self._unread += kept
            if kept or self._window - self._credit >= self._window // 4:
                self._consume(size - kept)
            else:
                self._since_growth += size

    def _feed_extended(self, message: Any) -> None:
        message.get_int()
        data = message.get_binary()
        self._count(len(data), self._on_stderr(data))

    def _window_adjust(self, message: Any) -> None:
        self._widen(message.get_int())

    def _widen(self, count: int) -> None:
        """Allow `count` bytes more; called straight from the packet reader as `_take`."""
        before = self._allowed
        self._allowed += count
        # Compared after it was raised: the sender does it in the opposite order, so one of both
        # sees that sending can go on.
        if before > self._sent:
            return
        try:
            self._handler.writable()
        except Exception:  # noqa: BLE001 - a server may grant any size of packets
            _log.exception("a channel could not go on sending; it is closed")
            self.fail()

    def _handle_eof(self, _message: Any) -> None:
        self._handler.ended()

    def _handle_close(self, _message: Any) -> None:
        self._close_received = True
        if self._close_sent:
            self._release()
        else:
            self._handler.closed()

    def _handle_request(self, message: Any) -> None:
        """Note how a command ended; refuse all else, as RFC 4254 section 5.4 wants."""
        kind, wants_answer = message.get_string(), message.get_boolean()
        if kind == b"exit-status":
            self.exited(message.get_int())
        elif kind == b"exit-signal":
            name = message.get_string().decode("ascii", "replace")
            self.exited(128 + _SIGNALS.get(name, 0))
        elif wants_answer and not self._close_sent:
            # sshd ends a connection without answers to its probes.
            self._transport.reply(self._head(common.cMSG_CHANNEL_FAILURE))

    def exited(self, status: int) -> None:
        """Handle how a session's command ended: its status, or 128 + N for signal N."""

    def _ignore(self, _message: Any) -> None: ...  # answers that were not requested

    _request_success = _request_failed = _ignore

    def _unlink(self) -> None:
        with self._lock:
            if self._close_received:
                return
            self._close_sent = self._close_received = True
        self._release()
        self._handler.lost()
