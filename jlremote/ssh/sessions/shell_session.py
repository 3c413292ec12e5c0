"""One script on the host: `exec /bin/sh -s` with the script on its stdin."""

from __future__ import annotations

import contextlib
import threading
import time
from typing import Any

import paramiko
from paramiko import common

from jlremote.errors import Busy, LinkLost
from jlremote.ssh.channels.session_slots import SessionSlots
from jlremote.ssh.contract import Output, Stdin, Stream, Terminal
from jlremote.ssh.sessions import pseudo_terminal
from jlremote.ssh.sessions.deadline import Deadline
from jlremote.ssh.sessions.search_path import with_search_path
from jlremote.ssh.wire_format import string

_COMMAND = "exec /bin/sh -s"
_PIECE = 1 << 20
_OPEN_SECONDS = 60.0
_PAUSES = (0.02, 0.05, 0.1, 0.2, 0.4)
# A process that the shell left behind may hold its output open for ever.
_QUIET_SECONDS = 1.0
_END_SECONDS = 1.0  # for a shell that was sent a signal, which it may ignore


class _Wake(threading.Event):
    """An event for both of a channel's streams.

    paramiko clears a buffer's event when the buffer is empty. If two buffers share an event, one
    would hide the other's data, so only the reader clears this one.
    """

    def clear(self) -> None:
        """Leave it set; `rest` clears it."""

    def rest(self) -> None:
        super().clear()


class Window(threading.Condition):
    """A channel's condition that also sets an event when the other side takes more."""

    def __init__(self, lock: Any, wake: threading.Event) -> None:
        super().__init__(lock)
        self._wake = wake

    def notify_all(self) -> None:
        """Notify, as paramiko does when the window grows."""
        super().notify_all()
        self._wake.set()


class StdinSender:
    """Sends a script and then its input over a channel without a timeout; nothing here waits.

    With `hold` the channel's stdin stays open at the end.
    """

    def __init__(self, channel: Any, script: bytes, stdin: Stdin | None, *, hold: bool) -> None:
        self._channel = channel
        self._unsent = memoryview(script)
        self._stdin = stdin
        self._hold = hold
        self._over = False

    def send(self) -> None:
        """Send what has arrived, as far as the channel's window takes it."""
        while not self._over:
            if self._unsent:
                if not self._send_piece():
                    return
            elif self._stdin is None:
                self._end()
            elif (piece := self._stdin.take()) is None:
                return
            else:
                self._unsent = memoryview(piece)
                self._stdin = self._stdin if piece else None

    def _send_piece(self) -> bool:
        """Send what the window takes; return whether it took anything."""
        try:
            sent = self._channel.send(self._unsent[:_PIECE])
        except TimeoutError:
            return False
        except (paramiko.SSHException, EOFError, OSError):
            sent = 0
        self._unsent = self._unsent[sent:]
        self._over = sent == 0  # the shell has ended; its status and output tell the rest
        return True

    def _end(self) -> None:
        self._over = True
        if not self._hold:
            with contextlib.suppress(paramiko.SSHException, EOFError, OSError):
                self._channel.shutdown_write()


class ShellSession:
    """One session channel that runs one script."""

    def __init__(self, transport: Any, deadline: Deadline, terminal: Terminal | None) -> None:
        self._transport = transport
        self._deadline = deadline
        self._terminal = terminal
        self._size = None if terminal is None else terminal.size
        self._wake = _Wake()
        self._channel = self._open()

    def run(self, script: bytes, output: Output, stdin: Stdin | None, *, hold_stdin: bool) -> int:
        """Send the script, pass on the output, and return the exit status.

        Raises:
            TimeoutError: the deadline has passed; the shell was sent a TERM signal.
            LinkLost: the connection broke, or the call was cancelled.
        """
        try:
            script = self._begin(with_search_path(script))
            hold_stdin = hold_stdin or self._terminal is not None
            if stdin is not None:
                stdin.on_ready(self._wake.set)
            self._exchange(StdinSender(self._channel, script, stdin, hold=hold_stdin), output)
            return self._status()
        except BaseException:
            self._terminate()
            raise
        finally:
            with contextlib.suppress(paramiko.SSHException, EOFError, OSError):
                self._channel.close()

    def _open(self) -> Any:
        """Open the channel; try again, as sshd counts a session a moment longer than it lasts."""
        pauses = iter(_PAUSES)
        while True:
            try:
                return self._ask_for_channel()
            except Busy:
                pause = next(pauses, None)
                if pause is None:
                    raise
                SessionSlots.of(self._transport).preempt_sessions()
            self._transport.ended.wait(self._deadline.remaining(pause))

    def _ask_for_channel(self) -> Any:
        seconds = self._deadline.remaining(_OPEN_SECONDS)
        try:
            return self._transport.open_channel("session", timeout=seconds)
        except (paramiko.SSHException, EOFError, OSError) as error:
            self._deadline.check()
            if not self._transport.is_active():
                raise LinkLost("the connection is gone") from error
            raise Busy(
                "the server opens no more sessions on this connection",
                hint="try again when other commands have ended: its `MaxSessions` is low",
            ) from error

    def _begin(self, script: bytes) -> bytes:
        """Request the shell without waiting; return the script for stdin, in the same round trip.

        In a terminal that is `b""`: stdin is the person's there.
        """
        self._channel.settimeout(0.0)
        self._channel.in_buffer.set_event(self._wake)
        self._channel.in_stderr_buffer.set_event(self._wake)
        self._channel.out_buffer_cv = Window(self._channel.lock, self._wake)
        if self._terminal is not None and self._size is not None:
            self._request("pty-req", pseudo_terminal.pty_request(self._terminal.kind, self._size))
        in_terminal = self._terminal is not None
        command = pseudo_terminal.command(script) if in_terminal else _COMMAND
        self._request("exec", string(command.encode()), want_reply=True)
        return b"" if in_terminal else script

    def _resize(self) -> None:
        """Send the terminal's size, if it has changed."""
        if self._terminal is None or self._terminal.size == self._size:
            return
        self._size = self._terminal.size
        self._request("window-change", pseudo_terminal.window_change(self._size))

    def _request(self, kind: str, details: bytes, *, want_reply: bool = False) -> None:
        head = common.cMSG_CHANNEL_REQUEST + self._channel.remote_chanid.to_bytes(4, "big")
        request = head + string(kind.encode()) + bytes((want_reply,)) + details
        try:
            self._transport._send_user_message(paramiko.Message(request))
        except (paramiko.SSHException, EOFError, OSError) as error:
            raise LinkLost("the connection broke") from error

    def _exchange(self, sender: StdinSender, output: Output) -> None:
        """Send and receive until both streams end; neither direction waits for the other."""
        quiet_since = time.monotonic()
        while True:
            self._wake.rest()
            self._resize()
            sender.send()
            if self._drain(output):
                quiet_since = time.monotonic()
                self._deadline.check()  # endless output must not outlast the deadline
                continue
            if self._finished(quiet_since):
                return
            self._deadline.check()
            pause = _QUIET_SECONDS if self._channel.status_event.is_set() else 60.0
            self._wake.wait(self._deadline.remaining(pause))

    def _drain(self, output: Output) -> bool:
        """Pass on the output that has arrived; return whether there was any."""
        out = self._read("stdout", output)
        return self._read("stderr", output) or out

    def _read(self, stream: Stream, output: Output) -> bool:
        read = self._channel.recv if stream == "stdout" else self._channel.recv_stderr
        try:
            data = read(_PIECE)
        except (TimeoutError, OSError):
            return False
        if data:
            output(stream, data)
        return bool(data)

    def _finished(self, quiet_since: float) -> bool:
        channel = self._channel
        if channel.closed:
            return True
        if not channel.status_event.is_set():
            return False
        return channel.eof_received or time.monotonic() - quiet_since >= _QUIET_SECONDS

    def _status(self) -> int:
        if self._channel.exit_status >= 0:
            return int(self._channel.exit_status)
        if self._transport.is_active() and not self._channel.event_ready:
            raise LinkLost(
                "the server refused to run a command",
                hint="ask its administrator: the account may only forward or transfer files",
            )
        raise LinkLost("the connection broke while a command ran")

    def _terminate(self) -> None:
        """Let sshd (7.9 and later) end the shell and its foreground processes."""
        if not self._channel.closed:
            with contextlib.suppress(LinkLost):
                self._request("signal", string(b"TERM"))
                self._channel.status_event.wait(_END_SECONDS)
