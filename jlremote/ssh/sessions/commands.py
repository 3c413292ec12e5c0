"""Scripts on the host, as many at once as its server serves."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator
from typing import Any

from jlremote.errors import Busy, LinkLost
from jlremote.ssh.channels.session_slots import SessionSlots
from jlremote.ssh.contract import Output, Stdin, SudoPassword, Terminal
from jlremote.ssh.sessions.deadline import Deadline
from jlremote.ssh.sessions.shell_session import ShellSession
from jlremote.ssh.sessions.sudo_password import SudoScript


class Commands:
    """Runs scripts over one connection, at most eight at once."""

    def __init__(self, transport: Any, sudo: SudoPassword | None = None) -> None:
        self._transport = transport
        self._sudo = sudo
        self._slots = SessionSlots.of(transport)

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
    ) -> int:
        """Run a script; see `contract.Connection.execute`.

        Raises:
            TimeoutError: `timeout` seconds went by; the shell was sent a TERM signal.
            LinkLost: the connection broke, or `cancelled` was set.
            Busy: the server opens no more sessions, or too many last already.
        """
        deadline = Deadline(timeout, cancelled)
        in_terminal = terminal is not None
        way = SudoScript(script, stdin, output, self._sudo, in_terminal=in_terminal)
        with self._turn(deadline, lasting=timeout is None):
            session = ShellSession(self._transport, deadline, terminal)
            return session.run(way.script, way.output, way.stdin, hold_stdin=hold_stdin)

    def run_preemptible(self, script: bytes, output: Output) -> bool:
        """Run a script in a spare session; see `contract.Connection.run_preemptible`.

        Raises:
            LinkLost: the connection broke.
            Busy: there is no session to spare.
        """
        loan = _Loan()
        if not self._slots.borrow(loan):
            raise Busy("no session of this connection is to spare")
        try:
            way = SudoScript(script, loan, output, self._sudo, in_terminal=False)
            session = ShellSession(self._transport, Deadline(None, None), None)
            session.run(way.script, way.output, way.stdin, hold_stdin=False)
        finally:
            self._slots.bring_back(loan)
        return not loan.over

    @contextlib.contextmanager
    def _turn(self, deadline: Deadline, *, lasting: bool) -> Iterator[None]:
        if lasting and not self._slots.may_last():
            raise Busy(
                f"{self._slots.lasting()} terminals, logs, mounts and the like are open over this"
                " connection already",
                hint="close one of them, and try again",
            )
        try:
            self._take_slot(deadline)
            try:
                yield
            finally:
                self._slots.give_back()
        finally:
            if lasting:
                self._slots.lasted()

    def _take_slot(self, deadline: Deadline) -> None:
        while not self._slots.take(deadline.slice()):
            deadline.check()
            if not self._transport.is_active():
                raise LinkLost("the connection is gone")


class _Loan:
    """A borrowed session's stdin: nothing comes, and its end when somebody else wants it."""

    def __init__(self) -> None:
        self.over = False
        self._wake: Callable[[], None] = lambda: None

    def preempt(self) -> None:
        """See `PreemptibleSession`."""
        self.over = True
        self._wake()

    def take(self) -> bytes | None:
        """See `Stdin`."""
        return b"" if self.over else None

    def on_ready(self, wake: Callable[[], None]) -> None:
        """See `Stdin`."""
        self._wake = wake
