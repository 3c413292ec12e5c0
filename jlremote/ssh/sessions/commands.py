"""Scripts on the host, as many at once as its server serves."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator
from typing import Any

from jlremote.errors import Busy, LinkLost
from jlremote.ssh.channels.session_slots import SessionSlots
from jlremote.ssh.contract import Given, Output, SudoPassword, Terminal
from jlremote.ssh.sessions.patience import Patience
from jlremote.ssh.sessions.shell_session import ShellSession
from jlremote.ssh.sessions.sudo_password import Passing


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
        given: Given | None = None,
        hold_stdin: bool = False,
        terminal: Terminal | None = None,
    ) -> int:
        """Run a script; see `contract.Connection.execute`.

        Raises:
            TimeoutError: `timeout` seconds went by; the shell was sent a TERM signal.
            LinkLost: the connection broke, or `cancelled` was set.
            Busy: the server opens no more sessions, or too many last already.
        """
        patience = Patience(timeout, cancelled)
        in_terminal = terminal is not None
        way = Passing(script, given, output, self._sudo, in_terminal=in_terminal)
        with self._turn(patience, lasting=timeout is None):
            session = ShellSession(self._transport, patience, terminal)
            return session.run(way.script, way.output, way.given, hold_stdin=hold_stdin)

    def attend(self, script: bytes, output: Output) -> bool:
        """Run a script in a session that nobody else wants; see `contract.Connection.attend`.

        Raises:
            LinkLost: the connection broke.
            Busy: there is no session to spare.
        """
        loan = _Loan()
        if not self._slots.borrow(loan):
            raise Busy("no session of this connection is to spare")
        try:
            way = Passing(script, loan, output, self._sudo, in_terminal=False)
            session = ShellSession(self._transport, Patience(None, None), None)
            session.run(way.script, way.output, way.given, hold_stdin=False)
        finally:
            self._slots.bring_back(loan)
        return not loan.over

    @contextlib.contextmanager
    def _turn(self, patience: Patience, *, lasting: bool) -> Iterator[None]:
        if lasting and not self._slots.may_last():
            raise Busy(
                f"{self._slots.lasting()} terminals, logs, mounts and the like are open over this"
                " connection already",
                hint="close one of them, and try again",
            )
        try:
            self._take_slot(patience)
            try:
                yield
            finally:
                self._slots.give_back()
        finally:
            if lasting:
                self._slots.lasted()

    def _take_slot(self, patience: Patience) -> None:
        while not self._slots.take(patience.slice()):
            patience.check()
            if not self._transport.is_active():
                raise LinkLost("the connection is gone")


class _Loan:
    """A borrowed session's stdin: nothing comes, and its end when somebody else wants it."""

    def __init__(self) -> None:
        self.over = False
        self._wake: Callable[[], None] = lambda: None

    def called_in(self) -> None:
        """See `Borrower`."""
        self.over = True
        self._wake()

    def take(self) -> bytes | None:
        """See `Given`."""
        return b"" if self.over else None

    def tell(self, wake: Callable[[], None]) -> None:
        """See `Given`."""
        self._wake = wake
