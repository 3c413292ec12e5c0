"""One authenticated connection to a host whose key was verified: scripts, probes, refusals."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from jlremote.errors import LinkLost
from jlremote.place.host.framing import FromMarker, ended_early, new_marker
from jlremote.ssh.channels.session_channel import (
    Output,
    ScriptChannel,
    Stdin,
    StdinPieces,
    SudoPassword,
    Terminal,
)
from jlremote.ssh.channels.shell_session import MENDING, Deadline, ShellSession, answering_sudo
from jlremote.ssh.transport.transport import PROHIBITED, Transport
from jlremote.ssh.wire_format import opening
from jlremote.text import one_line


@dataclass(eq=False, repr=False)
class Connection:
    """One connection to a host; `transport` is for this room only."""

    transport: Transport
    _route: contextlib.ExitStack = field(default_factory=contextlib.ExitStack)
    _sudo: SudoPassword | None = None
    _head: Callable[[], bytes] = bytes  # what each script begins with
    _has_shell: bool = False

    @property
    def description(self) -> str:
        """The server's software, the type of its key and the cipher, on one line."""
        ours = self.transport
        return one_line(f"{ours.remote_version}, {ours.host_key_type}, {ours.remote_cipher}")

    @property
    def reason(self) -> str:
        """Why the connection ended, in one line of the server or the system; may be empty."""
        return one_line(self.transport.disconnection or str(self.transport.saved_exception or ""))

    def execute(
        self,
        script: bytes,
        output: Output,
        *,
        timeout: float | None = None,
        cancelled: threading.Event | None = None,
        stdin: Stdin | None = None,
        hold_stdin: bool = False,
        terminal: Terminal | None = None,
        variables: Mapping[str, str] | None = None,
    ) -> int:
        """Feed `script` to `/bin/sh -s` and return its exit status, 128 + N for signal N.

        Both output streams are drained all the time. Where the server opens no further session (its
        `MaxSessions` is 10), the call waits while others that have a time limit run. A call without
        one is refused while eight such calls, relays and mounts are open, so that short commands
        always find a session.

        Args:
            script: the whole script; then comes `stdin`, and then end of file.
            output: called from one thread with the stream and the bytes.
            timeout: seconds until the call gives up, `None` for never.
            cancelled: when set, the channel is closed and the call ends early.
            stdin: input for the script's commands. A shell may read ahead, so it must not begin
                before the shell is known to have read the script.
            hold_stdin: puts the end of file off until the connection is gone, for whatever reason.
            terminal: runs the script in a terminal of its own, in which `stdin` never ends and
                both streams are one. `stdin` also wakes the call when the size changes.
            variables: set for the shell, as far as the server accepts them.

        Raise `TimeoutError` if `timeout` seconds went by, `LinkLost` if the connection broke or
        `cancelled` was set, `NoShell` if another shell than `sh` reads scripts, where there is
        `stdin`, and `Busy` for too many calls without a time limit, or sessions for the server.
        """
        deadline = Deadline(timeout, cancelled)
        if stdin is not None:
            self._check_shell(deadline)
        script, stdin, output = answering_sudo(
            script, stdin, output, self._sudo, in_terminal=terminal is not None
        )
        session = ShellSession(self.transport, deadline, terminal, variables)
        return session.run(self._begun(script), output, stdin, hold_stdin=hold_stdin)

    def run_preemptible(self, script: bytes, output: Output) -> bool:
        """Run `script` until it ends or another command needs its session.

        Its stdin stays open until then. Return whether it ended by itself; errors as of `execute`.
        """
        pieces, preempted = StdinPieces(), threading.Event()
        pieces.open()

        def preempt() -> None:
            preempted.set()
            pieces.add(b"")

        script, stdin, output = answering_sudo(
            script, pieces, output, self._sudo, in_terminal=False
        )
        session = ShellSession(self.transport, Deadline(None, None), _preempt=preempt)
        session.run(self._begun(script), output, stdin, hold_stdin=False)
        return not preempted.is_set()

    def with_sudo_password(self, script: bytes) -> bytes:
        """Return `script` for `sh -s` with the password of `sudo` in it, as `execute` sends it."""
        script, _, _ = answering_sudo(script, None, lambda *_: None, self._sudo, in_terminal=False)
        return self._begun(script)

    def _begun(self, script: bytes) -> bytes:
        return MENDING + self._head() + script

    def probe(self, timeout: float) -> float:
        """Return the seconds until the host answered; `LinkLost` if it did not in time."""
        return self.transport.probe(timeout)

    def refusal(self, to: Sequence[str | int], timeout: float) -> str | None:
        """Return why the server does not connect to a port or a unix socket; `None` if it does.

        A port on which nothing listens or answers counts as connected to. OpenSSH gives no reason
        about sockets: `AllowStreamLocalForwarding no` looks like a path that is absent. `LinkLost`
        if the connection broke, or there was no answer within `timeout` seconds.
        """
        channel = ScriptChannel(self.transport)
        channel.ask(*opening(to))
        is_answered = channel.answered.wait(timeout)
        channel.close()
        refusal = channel.refusal
        if not is_answered or (refusal is None and not channel.is_granted):
            raise LinkLost("the server did not say whether it permits forwarding")
        if refusal is None or (len(to) > 1 and not refusal.startswith(PROHIBITED)):
            return None
        return one_line(refusal)

    def wait_closed(self, timeout: float | None = None) -> bool:
        """Wait up to `timeout` seconds, or for ever, until it is gone; return whether it is."""
        return self.transport.ended.wait(timeout)

    def close(self) -> None:
        """Close the connection, jump hosts and proxy commands included. Never raises."""
        self.transport.close()
        self._route.close()

    def _check_shell(self, deadline: Deadline) -> None:
        """Check once that scripts are read by `sh`.

        Startup files may have put another shell in its place, and that may wait for the end of a
        stdin which is kept open for a command's input: `NoShell`.
        """
        if self._has_shell:
            return
        marker = new_marker()
        streams = {"stdout": FromMarker(marker), "stderr": FromMarker(marker)}
        script = self._begun(f"echo {marker}\n".encode())
        ShellSession(self.transport, deadline).run(
            script, lambda stream, data: streams[stream].take(data), None, hold_stdin=False
        )
        self._has_shell = streams["stdout"].begun
        if not self._has_shell:
            raise ended_early(*(stream.noise for stream in streams.values()))
