"""The one connection to the host: made once for all commands, watched, and made again."""

from __future__ import annotations

import gc
import logging
import threading
from collections.abc import Callable
from dataclasses import dataclass, field

from jlremote import errors
from jlremote.errors import Authentication, JlrError, LinkLost, Unreachable
from jlremote.link.connection.backoff import Backoff, begin_loop
from jlremote.link.connection.liveness import Liveness
from jlremote.link.wire.states import Condition, State, without_history
from jlremote.questions import Asker, NeverAsks
from jlremote.ssh.connection import Connection

log = logging.getLogger(__name__)


# Questions wait for the next command with a terminal.
IN_BACKGROUND = NeverAsks("any `jlr` command in a terminal will ask you")


@dataclass(eq=False)
class Supervisor:
    """The connection to the host, its state, and the thread that watches it.

    `wanted` tells whether to reconnect without a command; `on_up` gets each new connection.
    """

    dial: Callable[[Asker], Connection]
    wanted: Callable[[], bool]
    on_up: Callable[[Connection], None]
    liveness: Liveness
    backoff: Backoff
    _changed: threading.Condition = field(default_factory=threading.Condition)
    _connection: Connection | None = None
    _dialing: bool = False
    condition: Condition = field(default_factory=lambda: Condition(State.DOWN))
    _ended: bool = False

    def start(self) -> None:
        begin_loop("supervisor", self._watch, wanted=lambda: not self._ended)

    def connection(self, asker: Asker) -> Connection:
        """Return the live connection, or make one; the host's questions go to `asker`.

        Of many callers only one dials, and the others share its result, unless that needs a person.
        Raise `Authentication` if the host refuses the login or a person must be asked, and
        `Unreachable` if the host cannot be reached.
        """
        with self._changed:
            while True:
                if self._connection is not None and not self._connection.wait_closed(0):
                    return self._connection
                if not self._dialing:
                    break
                self._changed.wait_for(lambda: not self._dialing)
                failed = self.condition.error
                if failed is not None and not isinstance(failed, errors.NeedsAuthentication):
                    raise without_history(failed)
            self._dialing = True
        return self._attempt(asker)

    def wait(self, timeout: float) -> Connection:
        """Wait for a live connection and return it; this neither dials nor asks.

        Raise the last error, or a `JlrError`, if there is none within `timeout` seconds.
        """
        with self._changed:
            if self._connection is None:
                self.backoff.hurry()
            self._changed.wait_for(
                lambda: self._connection is not None or self._ended or self._waits_for_a_person(),
                timeout,
            )
            if self._connection is not None:
                return self._connection
            error = self.condition.error
            raise without_history(error or LinkLost("the connection to the host is down"))

    def answers(self, seconds: float) -> bool | None:
        """Return whether the host answers within `seconds`, `None` without a connection by then."""
        with self._changed:
            self._changed.wait_for(lambda: self._connection or self._waits_for_a_person(), seconds)
            connection = self._connection
        if connection is None:
            return None
        try:
            connection.probe(seconds)
        except Unreachable:
            return False
        return True

    def _waits_for_a_person(self) -> bool:
        return self.condition.state is State.NEEDS_AUTH and not self._dialing

    def end(self) -> None:
        with self._changed:
            self._ended = True
            connection = self._connection
            self._become(None, State.DOWN)
        self.backoff.end()
        if connection is not None:
            connection.close()

    def lost(self, connection: Connection, error: JlrError) -> None:
        """Record that `connection` is dead."""
        connection.close()
        with self._changed:
            if self._connection is not connection:
                return
            log.warning("connection lost: %s", error)
            self.backoff.lost()
            self._become(None, State.RECONNECTING, error)

    def _attempt(self, asker: Asker) -> Connection:
        with self._changed:
            if self.condition.state not in (State.RECONNECTING, State.NEEDS_AUTH):
                self._become(None, State.CONNECTING)
        try:
            connection = self.dial(asker)
        except BaseException as failure:
            error = _known(failure)
            state = State.RECONNECTING if self.wanted() else State.DOWN
            state = State.NEEDS_AUTH if isinstance(error, Authentication) else state
            self._become(None, state, error, attempted=True)
            raise
        self.backoff.connected()
        self._become(connection, State.UP, attempted=True)
        log.info("connected: %s", connection.description)
        try:
            self.on_up(connection)
        except Exception:  # the connection is good, and its callers wait for it
            log.exception("the forwards were not told of the connection")
        return connection

    def _become(
        self,
        connection: Connection | None,
        state: State,
        error: JlrError | None = None,
        *,
        attempted: bool = False,
    ) -> None:
        with self._changed:
            if attempted:
                self._dialing = False
            self._connection = connection
            self.condition = self.condition.then(state, error)
            self._changed.notify_all()

    def _watch(self) -> None:
        while not self._ended:
            with self._changed:
                self._changed.wait_for(lambda: self._connection or self._gone() or self._ended)
                connection = self._connection
            if connection is not None:
                self.lost(connection, self.liveness.wait_until_dead(connection))
                # Dead connections hold a megabyte each, in cycles that only the collector finds.
                gc.collect()
            elif not self._ended:
                self._reconnect()

    def _gone(self) -> bool:
        return self.condition.state is State.RECONNECTING and not self._dialing

    def _reconnect(self) -> None:
        """Try until there is a connection, none is wanted any more, or a person is needed."""
        while self.wanted() and not self._ended:
            self.backoff.rest()
            try:
                self.connection(IN_BACKGROUND)
            except errors.HostKeyChanged as error:
                # No secret was sent. Without its VPN a laptop may find another host by that name,
                # and with the VPN the right one is back.
                self.backoff.failed(error)
            except Authentication:
                return
            except JlrError as error:
                log.info("reconnect failed: %s", error)
                self.backoff.failed(error)
            except Exception as bug:
                log.exception("reconnect failed")
                self.backoff.failed(_known(bug))
            else:
                return
        with self._changed:
            if self._gone():
                self._become(None, State.DOWN, self.condition.error)


def _known(failure: BaseException) -> JlrError:
    return failure if isinstance(failure, JlrError) else JlrError(f"bug: {failure!r}")
