"""One script on the host: `/bin/sh -s` with the script on its stdin, and the password of `sudo`."""

from __future__ import annotations

import math
import os
import struct
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from string import ascii_letters, digits
from typing import Any

from jlremote.errors import Busy, LinkLost, NotBegun
from jlremote.place.host import sudo
from jlremote.place.host.framing import new_marker
from jlremote.ssh.channels.channel_registry import ChannelRegistry
from jlremote.ssh.channels.session_channel import (
    Output,
    ScriptChannel,
    Stdin,
    Stream,
    SudoPassword,
    Terminal,
)
from jlremote.ssh.wire_format import string

# Without `exec`, which a `ForceCommand exec $SSH_ORIGINAL_COMMAND` has already.
SHELL = "/bin/sh -s"
# zsh splits no words, and takes the place of `sh` where a startup file of bash ends in `exec zsh`.
# It reads a line at a time, so what follows is left to `sh`. With TMOUT, which hardened hosts set,
# `read` gives up after so many seconds. A path without these two programs lacks the engines, too;
# the folders are sshd's own default, and come after those of the user's own `PATH`.
MENDING = b"""\
[ -z "${ZSH_VERSION-}" ] || exec /bin/sh -s
unset TMOUT
command -v cat >/dev/null 2>&1 && command -v id >/dev/null 2>&1 || {
  PATH=${PATH:+$PATH:}/usr/local/bin:/usr/bin:/bin; export PATH
}
"""
_OPEN_SECONDS = 60.0
_CANCEL_SECONDS = 0.2  # how long a cancelled call may go unnoticed
# A process that the shell left behind may hold its output open for ever.
_QUIET_SECONDS = 1.0
_WRONG = b"incorrect password attempt"  # as `sudo` says it
_END_SECONDS = 1.0  # for a shell that was sent a signal, which it may ignore
# RFC 4254, section 8, and RFC 8160: the erase key erases a letter, not a byte.
_IUTF8, _INPUT_SPEED, _OUTPUT_SPEED = 42, 128, 129
_MODES = struct.pack(">BIBIBIx", _IUTF8, 1, _INPUT_SPEED, 38400, _OUTPUT_SPEED, 38400)
_PLAIN = frozenset((ascii_letters + digits + " _-./:,=+@").encode())
# A server may refuse a terminal and run the command; engines say no more than "not a TTY" of it.
_TELL = b"""\
[ -t 0 ] || printf '%s\\n' \
  'the SSH server gives no terminal (`PermitTTY no`); with `</dev/null` none is asked for' >&2
"""
# `printf %b` reads `\0ooo` in every POSIX shell.
_COMMAND = """exec /bin/sh -c 'eval "$(printf %b "$1")"' sh '{}'"""


def window_change(size: os.terminal_size) -> bytes:
    """Return the details of a `window-change`; the size in pixels is not known."""
    return struct.pack(">IIII", size.columns, size.lines, 0, 0)


def terminal_command(script: bytes) -> str:
    """Return the command line that runs `script` with the terminal as its stdin."""
    return _COMMAND.format(
        "".join(chr(byte) if byte in _PLAIN else f"\\0{byte:03o}" for byte in _TELL + script)
    )


class Deadline:
    """The time limit of a call in seconds, `None` for none, and the event that cancels it."""

    def __init__(self, timeout: float | None, cancelled: threading.Event | None) -> None:
        self.is_limited = timeout is not None
        self._seconds = math.inf if timeout is None else timeout
        self._ends = time.monotonic() + self._seconds
        self._cancelled = cancelled

    def remaining(self, longest: float = 60.0) -> float:
        """Return the seconds that the call may wait before its next `check`."""
        if self._cancelled is not None:
            longest = min(longest, _CANCEL_SECONDS)
        return min(longest, max(0.0, self._ends - time.monotonic()))

    def check(self) -> None:
        """Raise `LinkLost` if the call was cancelled, `TimeoutError` if its time is over."""
        if self._cancelled is not None and self._cancelled.is_set():
            raise LinkLost("the command was cancelled")
        if time.monotonic() >= self._ends:
            raise TimeoutError(f"no end within {self._seconds:g} s")


@dataclass(eq=False)
class ShellSession:
    """One session channel that runs one script.

    With `preempt` it is preemptible, with a limited deadline a command, and else it may last for
    hours: `Busy` if too many of those are open.
    """

    _transport: Any
    _deadline: Deadline
    _terminal: Terminal | None = None
    _variables: Mapping[str, str] | None = None
    _preempt: Callable[[], None] | None = None
    _sent_all: bool = False

    def __post_init__(self) -> None:
        self._size = self._terminal.size if self._terminal else None
        self._slots = ChannelRegistry.of(self._transport).slots
        self._channel = ScriptChannel(self._transport)

    def run(self, script: bytes, output: Output, stdin: Stdin | None, *, hold_stdin: bool) -> int:
        """Open the session, send the script, pass on the output, and return the exit status.

        After its deadline, or when it is cancelled, the shell is sent a TERM signal.
        """
        try:
            self._open()
            self._unsent, self._stdin = memoryview(self._begin(script)), stdin
            self._hold = hold_stdin or self._terminal is not None
            if stdin is not None:
                stdin.on_ready(self._channel.wake.set)
            self._exchange(output)
            return self._status()
        except BaseException:
            if self._channel.is_granted and not self._channel.is_over:
                # sshd (7.9 and later) ends the shell and its foreground processes.
                self._channel.request(b"signal", string(b"TERM"))
                self._channel.exit.wait(_END_SECONDS)
            raise
        finally:
            self._channel.close()
            self._slots.end(self)

    def _open(self) -> None:
        is_lasting = self._preempt is None and not self._deadline.is_limited
        if is_lasting and (refusal := self._slots.keep(self)):
            raise Busy(refusal, hint="close one of them and try again")
        self._await_answer()
        self._deadline.check()  # nothing begins for a command that is gone
        if not self._transport.is_active():
            raise NotBegun("the connection is gone")
        if not self._channel.is_granted:
            hint = "try again when other commands have ended: its `MaxSessions` is low"
            raise Busy("the server opens no more sessions on this connection", hint=hint)
        if not is_lasting:
            self._slots.lend(self, self._preempt)

    def _await_answer(self) -> None:
        """Wait until the server grants or refuses the session; silence is no refusal."""
        channel = self._channel
        channel.begin()
        while not channel.answered.is_set():
            channel.wake.wait(self._deadline.remaining())
            channel.wake.clear()
            channel.run_actions()
            self._deadline.check()
            if not channel.answered.is_set() and time.monotonic() - channel.asked >= _OPEN_SECONDS:
                raise NotBegun(f"the server did not answer within {_OPEN_SECONDS:g} s")

    def _begin(self, script: bytes) -> bytes:
        """Request the shell without waiting; return the script for stdin, in the same round trip.

        In a terminal that is `b""`: stdin is the person's there.
        """
        terminal = self._terminal
        if terminal is not None and self._size is not None:
            details = string(terminal.kind.encode()) + window_change(self._size) + string(_MODES)
            self._channel.request(b"pty-req", details)
        for name, value in (self._variables or {}).items():
            self._channel.request(b"env", string(os.fsencode(name)) + string(os.fsencode(value)))
        command = SHELL if terminal is None else terminal_command(script)
        self._channel.request(b"exec", string(command.encode()), want_reply=True)
        return script if terminal is None else b""

    def _resize(self) -> None:
        if self._terminal is not None and self._terminal.size != self._size:
            self._size = self._terminal.size
            self._channel.request(b"window-change", window_change(self._size))

    def _send(self) -> None:
        """Send what has arrived, as far as the channel's window takes it; nothing here waits."""
        while not self._sent_all:
            if self._unsent:
                room = self._channel.room()
                if self._channel.is_over or not room:
                    return
                piece, self._unsent = self._unsent[:room], self._unsent[room:]
                self._channel.send(piece)
            elif self._stdin is None:
                self._sent_all = True
                if not self._hold:
                    self._channel.send_end()
            elif (taken := self._stdin.take()) is None:
                return
            else:
                self._unsent = memoryview(taken)
                self._stdin = self._stdin if taken else None

    def _exchange(self, output: Output) -> None:
        channel = self._channel
        quiet_since = time.monotonic()
        while True:
            channel.wake.clear()
            # Before the output is taken: what came before the end is taken as well.
            is_finished = self._is_finished(quiet_since)
            channel.run_actions()
            self._resize()
            self._send()
            if (taken := channel.take()) is not None:
                output(*taken)
                channel.consumed(len(taken[1]))
                quiet_since = time.monotonic()
                self._deadline.check()  # endless output must not outlast the deadline
                continue
            if is_finished:
                return
            self._deadline.check()
            pause = _QUIET_SECONDS if channel.exit.is_set() else 60.0
            channel.wake.wait(self._deadline.remaining(pause))

    def _is_finished(self, quiet_since: float) -> bool:
        channel = self._channel
        if channel.is_over:
            return True
        if not channel.exit.is_set():
            return False
        # sshd may send the exit status before the last output of a script that was long quiet.
        quiet_since = max(quiet_since, channel.exited_at)
        return channel.has_ended or time.monotonic() - quiet_since >= _QUIET_SECONDS

    def _status(self) -> int:
        if self._channel.exit_status is not None:
            return self._channel.exit_status
        if self._transport.is_active() and not self._channel.is_accepted:
            hint = "ask its administrator: the account may only forward or transfer files"
            raise LinkLost("the server refused to run a command", hint=hint)
        raise LinkLost("the connection broke while a command ran")


class TypedText:
    """Types a text when a terminal shows a marker, before the person's own input.

    `shown` gets the terminal's output without the marker.
    """

    def __init__(self, text: bytes, marker: str, stdin: Stdin | None, shown: Output) -> None:
        self._text: bytes | None = text
        self._marker = marker.encode()
        self._stdin = stdin
        self._shown = shown
        self._before = b""
        self._asked = False
        self._wake: Callable[[], None] = lambda: None

    def output(self, stream: Stream, data: bytes) -> None:
        if not self._asked:
            before, marker, data = (self._before + data).partition(self._marker)
            self._asked = bool(marker)
            # What ends like the marker's beginning may be that.
            lengths = range(0 if marker else len(self._marker) - 1, 0, -1)
            kept = next((one for one in lengths if before.endswith(self._marker[:one])), 0)
            self._before = before[len(before) - kept :]
            data = before[: len(before) - kept] + data
            if self._asked:
                self._wake()
        if data:
            self._shown(stream, data)

    def on_ready(self, wake: Callable[[], None]) -> None:
        self._wake = wake
        if self._stdin is not None:
            self._stdin.on_ready(wake)

    def take(self) -> bytes | None:
        if not self._asked:
            return None
        if self._text is not None:
            text, self._text = self._text, None
            return text
        return self._stdin.take() if self._stdin is not None else None


def _rewritten(script: bytes, rewrite: Callable[[str, str], str], secret: str) -> bytes:
    text = script.decode("utf-8", "surrogateescape")
    return rewrite(text, secret).encode("utf-8", "surrogateescape")


def answering_sudo(
    script: bytes,
    stdin: Stdin | None,
    output: Output,
    source: SudoPassword | None,
    *,
    in_terminal: bool,
) -> tuple[bytes, Stdin | None, Output]:
    """Return script, stdin and output of a script that gets the password of `sudo` if need be.

    It is in the script, but in a terminal in `stdin`.
    """
    password = source.password_for(script) if source else None
    if source is None or password is None:
        return script, stdin, output

    def watched(stream: Stream, data: bytes) -> None:
        if _WRONG in data:
            source.refused()
        output(stream, data)

    if not in_terminal:
        return _rewritten(script, sudo.given, password), stdin, watched
    marker = new_marker()
    typing = TypedText(sudo.typed(password), marker, stdin, watched)
    return _rewritten(script, sudo.asking, marker), typing, typing.output
