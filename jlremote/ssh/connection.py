"""One authenticated connection: commands over it, its state and its end."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import paramiko

from jlremote.errors import Busy, LinkLost
from jlremote.place.host.framing import FromMarker, ended_early, new_marker
from jlremote.ssh.channels.session_slots import SessionSlots
from jlremote.ssh.contract import (
    NOTHING,
    Output,
    Stdin,
    Stream,
    SudoPassword,
    Terminal,
)
from jlremote.ssh.sessions.pieces import StdinPieces
from jlremote.ssh.sessions.shell_session import Deadline, ShellSession
from jlremote.ssh.sessions.startup_files import mended
from jlremote.ssh.sessions.typed_text import SudoScript, with_password
from jlremote.ssh.transport.transport import Transport
from jlremote.ssh.wire_format import STREAMLOCAL, direct_streamlocal
from jlremote.text import one_line


@dataclass(eq=False, repr=False)
class SSHConnection:
    """One connection to a host; follows `contract.Connection`."""

    transport: Transport
    _route: contextlib.ExitStack = field(default_factory=contextlib.ExitStack)
    _sudo: SudoPassword | None = None
    _head: Callable[[], bytes] = bytes  # what each script begins with
    _has_shell: bool = False

    def __post_init__(self) -> None:
        self._slots = SessionSlots.of(self.transport)

    @property
    def description(self) -> str:
        return one_line(self.transport.description)

    @property
    def reason(self) -> str:
        return one_line(self.transport.reason)

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
        variables: Mapping[str, str] = NOTHING,
    ) -> int:
        deadline = Deadline(timeout, cancelled)
        if stdin is not None:
            self._check_shell(deadline)
        sudo = SudoScript(script, stdin, output, self._sudo, in_terminal=terminal is not None)
        if timeout is None and not self._slots.keep(deadline):
            raise Busy(self._slots.too_many(), hint="close one of them and try again")
        try:
            session = ShellSession(self.transport, deadline, terminal, variables)
            return session.run(
                self._begun(sudo.script), sudo.output, sudo.stdin, hold_stdin=hold_stdin
            )
        finally:
            self._slots.end(deadline)

    def run_preemptible(self, script: bytes, output: Output) -> bool:
        stdin = _PreemptibleStdin()
        stdin.open()
        sudo = SudoScript(script, stdin, output, self._sudo, in_terminal=False)
        session = ShellSession(self.transport, Deadline(None, None), None)
        self._slots.lend(stdin)
        try:
            session.run(self._begun(sudo.script), sudo.output, sudo.stdin, hold_stdin=False)
        finally:
            self._slots.end(stdin)
        return not stdin.preempted

    def with_sudo_password(self, script: bytes) -> bytes:
        return self._begun(with_password(script, self._sudo))

    def _begun(self, script: bytes) -> bytes:
        return mended(self._head() + script)

    def probe(self, timeout: float) -> float:
        return self.transport.probe(timeout)

    def refusal(self, address: str, port: int, timeout: float) -> str | None:
        try:
            self.transport.open_tunnel(address, port, timeout).close()
        except paramiko.ChannelException as error:
            if error.code == paramiko.common.OPEN_FAILED_ADMINISTRATIVELY_PROHIBITED:
                return f"administratively prohibited: {one_line(str(error.text))}"
        except (paramiko.SSHException, EOFError, OSError) as error:
            raise LinkLost(
                f"the server did not say whether it permits forwarding: {error}"
            ) from error
        return None

    def reaches(self, path: str, timeout: float) -> bool:
        details = direct_streamlocal(path)
        try:
            self.transport.open_channel(STREAMLOCAL, details, timeout=timeout).close()
        except paramiko.ChannelException:
            return False
        except (paramiko.SSHException, EOFError, OSError) as error:
            raise LinkLost(
                f"the server did not say whether it connects to a unix socket: {error}"
            ) from error
        return True

    def wait_closed(self, timeout: float | None = None) -> bool:
        return self.transport.ended.wait(timeout)

    def close(self) -> None:
        self.transport.close()
        self._route.close()

    def _check_shell(self, deadline: Deadline) -> None:
        """Check once that scripts are read by `sh`.

        Startup files may have put another shell in its place, and that may wait for the end of a
        stdin which is kept open for a command's input.

        Raises:
            NoShell: they are not.
        """
        if self._has_shell:
            return
        marker = new_marker()
        said: dict[Stream, FromMarker] = {
            "stdout": FromMarker(marker),
            "stderr": FromMarker(marker),
        }

        def hear(stream: Stream, data: bytes) -> None:
            said[stream].take(data)

        ShellSession(self.transport, deadline, None).run(
            self._begun(f"echo {marker}\n".encode()), hear, None, hold_stdin=False
        )
        self._has_shell = said["stdout"].begun
        if not self._has_shell:
            raise ended_early(*(each.noise for each in said.values()))


class _PreemptibleStdin(StdinPieces):
    """The stdin of a preemptible session: it is empty, and ends when the session is needed."""

    preempted = False

    def preempt(self) -> None:
        self.preempted = True
        self.add(b"")
