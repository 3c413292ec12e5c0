"""Keeps the one connection alive: who dials, when it counts as dead, when it is tried again."""

from __future__ import annotations

import logging
import random
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass

from jlremote.errors import Authentication, JlrError, LinkLost, NeedsAuthentication, Unreachable
from jlremote.link.states import Condition, State
from jlremote.questions import Asker, Question
from jlremote.ssh.contract import Connection

log = logging.getLogger(__name__)

FIRST_PAUSE, SHORTEST_PAUSE, LONGEST_PAUSE = 0.25, 1.0, 30.0


@dataclass(frozen=True)
class Probing:
    """How a dead connection is noticed; the user's `ServerAlive` settings where there are any.

    Attributes:
        interval: seconds between two probes, and what one may take.
        count: unanswered probes until the connection counts as dead.

    """

    interval: float = 15.0
    count: int = 3


class Nobody:
    """The asker of the background, where no person is."""

    def ask(self, question: Question) -> str:
        """Refuse: what must be asked waits for the next command with a terminal."""
        what = question.text.strip().splitlines()[0] if question.text.strip() else question.kind
        raise NeedsAuthentication(
            f"the host asks again: {what}", hint="any `jlr` command in a terminal will ask you"
        )


def pause_before(attempt: int, chance: float) -> float:
    """Return the seconds to wait before reconnect attempt number `attempt`, counted from 0.

    The first comes at once. Full jitter on doubling pauses keeps many laptops that lost the same
    server from coming back in step.

    Args:
        attempt: how many attempts failed before.
        chance: a random number in [0, 1).

    """
    if attempt == 0:
        return 0.0
    ceiling = min(LONGEST_PAUSE, FIRST_PAUSE * 2.0 ** min(attempt, 10))
    return ceiling * (0.5 + chance / 2)


class Supervisor:
    """The one connection to the host, its state, and the thread that watches over it."""

    def __init__(
        self,
        dial: Callable[[Asker], Connection],
        *,
        wanted: Callable[[], bool],
        on_up: Callable[[Connection], None],
        probing: Callable[[], Probing] = Probing,
    ) -> None:
        self._dial = dial
        self._wanted = wanted
        self._on_up = on_up
        self._probing = probing
        self._changed = threading.Condition()
        self._connection: Connection | None = None
        self._dialing = False
        self._attempts = 0
        self._condition = Condition(State.DOWN)
        self._ended = False
        self._again = threading.Event()

    @property
    def condition(self) -> Condition:
        """The state as it is now."""
        with self._changed:
            return self._condition

    def start(self) -> None:
        """Watch from now on."""
        threading.Thread(target=self._watch, name="supervisor", daemon=True).start()

    def connection(self, asker: Asker) -> Connection:
        """Return the live connection, making it if there is none; `asker` is asked meanwhile.

        Of many that call at once only one dials; the others take what comes of it. One that can
        ask a person tries once more where one that cannot was turned away.

        Raises:
            Authentication: the host does not let us in, or a person must be asked.
            Unreachable: there is no way to the host.

        """
        with self._changed:
            while True:
                if self._connection is not None:
                    return self._connection
                if not self._dialing:
                    break
                attempt = self._attempts
                self._changed.wait_for(lambda seen=attempt: self._attempts != seen)  # type: ignore[misc]
                failed = self._condition.error
                if failed is not None and not isinstance(failed, NeedsAuthentication):
                    raise failed
            self._dialing = True
        return self._attempt(asker)

    def wait(self, timeout: float) -> Connection:
        """Return the live connection once there is one; dials nothing and asks nobody.

        Raises:
            JlrError: there is none within `timeout` seconds; the last error, if there was one.

        """
        self._again.set()
        with self._changed:
            self._changed.wait_for(
                lambda: self._connection is not None or self._ended or self._waits_for_a_person(),
                timeout,
            )
            if self._connection is not None:
                return self._connection
            raise self._condition.error or LinkLost("the connection to the host is down")

    def _waits_for_a_person(self) -> bool:
        return self._condition.state is State.NEEDS_AUTH and not self._dialing

    def end(self) -> None:
        """Close the connection and stop watching."""
        with self._changed:
            self._ended = True
            connection = self._connection
            self._connection = None
            self._condition = Condition(State.DOWN)
            self._changed.notify_all()
        self._again.set()
        if connection is not None:
            connection.close()

    def lost(self, connection: Connection, error: JlrError) -> None:
        """Note that `connection` is dead."""
        connection.close()
        with self._changed:
            if self._connection is not connection:
                return
            log.warning("connection lost: %s", error)
            self._connection = None
            self._condition = Condition(State.RECONNECTING, error)
            self._changed.notify_all()

    def _attempt(self, asker: Asker) -> Connection:
        with self._changed:
            if self._condition.state is not State.RECONNECTING:
                self._condition = Condition(State.CONNECTING)
        try:
            connection = self._dial(asker)
        except BaseException as failure:
            error = failure if isinstance(failure, JlrError) else JlrError(f"bug: {failure!r}")
            self._settle(None, Condition(self._state_after(error), error))
            raise
        self._settle(connection, Condition(State.UP))
        log.info("connected")
        self._on_up(connection)
        return connection

    def _state_after(self, error: JlrError) -> State:
        if isinstance(error, Authentication):
            return State.NEEDS_AUTH
        return State.RECONNECTING if self._wanted() else State.DOWN

    def _settle(self, connection: Connection | None, condition: Condition) -> None:
        with self._changed:
            self._connection = connection
            self._condition = condition
            self._dialing = False
            self._attempts += 1
            self._changed.notify_all()

    def _watch(self) -> None:
        while not self._ended:
            with self._changed:
                self._changed.wait_for(lambda: self._connection or self._gone() or self._ended)
                connection = self._connection
            if connection is not None:
                self.lost(connection, self._death_of(connection))
            elif not self._ended:
                self._reconnect()

    def _gone(self) -> bool:
        return self._condition.state is State.RECONNECTING and not self._dialing

    def _death_of(self, connection: Connection) -> JlrError:
        """Return why the connection died, once it has."""
        missed = 0
        while True:
            probing = self._probing()
            if _closed_or_slept(connection, probing.interval):
                return LinkLost("the connection to the host was closed")
            try:
                connection.probe(probing.interval)
                missed = 0
            except Unreachable as unanswered:
                missed += 1
                if missed >= probing.count:
                    return unanswered

    def _reconnect(self) -> None:
        """Try again until there is a connection, nobody wants one, or a person is needed."""
        failures = 0
        while self._wanted() and not self._ended:
            self._rest(pause_before(failures, random.random()))  # noqa: S311  # jitter is no secret
            try:
                self.connection(Nobody())
            except Authentication:
                return
            except JlrError as error:
                log.info("reconnect failed: %s", error)
                failures += 1
            else:
                return
        with self._changed:
            if self._gone():
                self._condition = Condition(State.DOWN, self._condition.error)

    def _rest(self, pause: float) -> None:
        """Wait `pause` seconds; a request that comes in shortens it, though not below a second."""
        self._again.clear()
        with self._changed:
            self._changed.wait_for(lambda: self._ended, min(pause, SHORTEST_PAUSE))
        if pause > SHORTEST_PAUSE:
            self._again.wait(pause - SHORTEST_PAUSE)


def _closed_or_slept(connection: Connection, interval: float) -> bool:
    """Wait `interval` seconds; return whether the connection closed. Ends early after a sleep.

    The boot clock runs while the machine sleeps and the monotonic clock does not, so their
    difference jumps at a wake; then the connection must prove itself at once.
    """
    asleep = _seconds_asleep()
    waited = 0.0
    while waited < interval and _seconds_asleep() - asleep < 1.0:
        slice_ = min(5.0, interval - waited)
        if connection.wait_closed(slice_):
            return True
        waited += slice_
    return False


def _seconds_asleep() -> float:
    if not hasattr(time, "CLOCK_BOOTTIME"):
        return 0.0
    return time.clock_gettime(time.CLOCK_BOOTTIME) - time.monotonic()
