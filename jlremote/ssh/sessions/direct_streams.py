"""A command's stdin and stdout by a connection of their own, past the engine of its container.

The command runs in a session channel like any other, whose first line tells where its other half
listens (`runtimes/scripts/direct_program.py` documents the protocol). Both ways are used one after
the other, and each direction changes over once: what was on the way before is counted, so that no
byte is lost or comes twice. A command that ends soon never changes over, and waits for nothing.
"""

from __future__ import annotations

import struct
import threading
import time
from typing import Any

from jlremote.errors import LinkLost
from jlremote.ssh.contract import Direct, WriteNow
from jlremote.ssh.sessions.script_channel import ScriptChannel
from jlremote.ssh.sessions.sudo_password import beginning
from jlremote.ssh.wire_format import direct_tcpip

COUNT = struct.Struct(">Q")
_NOWHERE = ("127.0.0.1", 0)
_LONGEST_LINE = 200
# How long a connection may bring nothing after the end of the command.
_QUIET_SECONDS = 10.0


class DirectChannel(ScriptChannel):
    """The connection to the command's other half; its output waits for all that came before.

    Attributes:
        due: how many bytes came before, once that is known.
        received_at: when something came last, in seconds of the monotonic clock.
    """

    def __init__(self, transport: Any, write_now: WriteNow | None, wake: threading.Event) -> None:
        super().__init__(transport, write_now, wake)
        self.due: int | None = None
        self.received_at = 0.0
        self._preface = bytearray()
        self._may_write_now, self.writes_now = self.writes_now, False
        self._held = True

    def opened(self) -> None:
        super().opened()
        self.wake.set()

    def received(self, data: memoryview) -> int:
        self.received_at = time.monotonic()
        missing = COUNT.size - len(self._preface)
        if missing <= 0:
            return super().received(data)
        self._preface += data[:missing]
        head, data = len(data[:missing]), data[missing:]
        if len(self._preface) == COUNT.size:
            (self.due,) = COUNT.unpack(self._preface)
        return head + (super().received(data) if data else 0)

    def release(self) -> None:
        """Let its output pass: all that came before has."""
        self._held, self.writes_now = False, self._may_write_now

    def take(self) -> Any:
        """Return the next piece of output as `ScriptChannel` does, none before `release`."""
        return None if self._held else super().take()


class DirectWay:
    """Both streams of one command, as its thread sees them."""

    def __init__(self, session: ScriptChannel, direct: Direct, write_now: WriteNow | None) -> None:
        self.channel: DirectChannel | None = None
        self._session = session
        self._address = direct.address
        self._word = direct.word.encode() + b" "
        self._write_now = write_now
        self._line = b""
        self._announced = False
        self._secret = b""
        self._greeted = False
        self._passed = 0

    def passing(self, data: bytes) -> bytes:
        """Return what is to be passed on of the session's stdout."""
        if self._announced:
            self._passed += len(data)
            return data
        before, word, rest = (self._line + data).partition(self._word)
        if not word:
            kept = beginning(self._word, before)
            self._line = before[len(before) - kept :]
            return before[: len(before) - kept]
        line, newline, after = rest.partition(b"\n")
        if not newline and len(rest) < _LONGEST_LINE:
            self._line = word + rest
            return before
        self._announced = True
        self._connect(line)
        self._passed = len(after)
        return before + after

    def _connect(self, line: bytes) -> None:
        port, _, secret = line.partition(b" ")
        if not port.isdigit() or not 0 < int(port) < 1 << 16:
            return
        self._secret = secret
        self.channel = DirectChannel(self._session.transport, self._write_now, self._session.wake)
        self.channel.ask(b"direct-tcpip", direct_tcpip(self._address, int(port), _NOWHERE))

    def go_on(self) -> None:
        """Greet the other half once it is connected, and let its output pass once that is due."""
        channel = self.channel
        if channel is None:
            return
        channel.run_actions()
        if channel.is_granted and not self._greeted and channel.room() >= len(self._secret):
            self._greeted = True
            channel.send(memoryview(self._secret))
        if channel.due is not None and (channel.due == self._passed or self._session.is_over):
            channel.release()

    def for_input(self, sent: int) -> DirectChannel | None:
        """Return the channel for input that follows `sent` bytes; `None` if there is none yet."""
        channel = self.channel
        if channel is None or not self._greeted or channel.is_over or channel.room() < COUNT.size:
            return None
        channel.send(memoryview(COUNT.pack(sent)))
        return channel

    def is_over(self, quiet_since: float) -> bool:
        """Return whether no more output comes, if the session itself has ended.

        A container that was removed takes its network with it, and closes no connection.

        Raises:
            LinkLost: the command has ended, and the rest of its output does not come.
        """
        channel, session = self.channel, self._session
        if channel is None or not channel.is_granted or channel.has_ended or channel.is_over:
            return True
        quiet_since = max(quiet_since, channel.received_at, session.exited_at)
        if session.exit.is_set() and time.monotonic() - quiet_since >= _QUIET_SECONDS:
            raise LinkLost(
                f"the command has ended, and nothing of its output came for {_QUIET_SECONDS:g} s",
                hint="its container was removed, or the network stands still; some may be missing",
            )
        return False

    def close(self) -> None:
        if self.channel is not None:
            self.channel.close()
