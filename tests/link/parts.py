"""A supervisor and forwards of a link whose connection and proofs are the test's."""

from __future__ import annotations

import queue
from collections.abc import Callable
from typing import cast

from jlremote.errors import Busy
from jlremote.jupyter.endpoint import Endpoint
from jlremote.link.connection.backoff import Backoff
from jlremote.link.connection.liveness import Liveness, Probing
from jlremote.link.connection.supervisor import Supervisor
from jlremote.link.forwards.link_forwards import Forwards
from jlremote.link.forwards.session_forward import SessionForward
from jlremote.link.wire.states import Condition, State
from jlremote.link.wire.status import ForwardKey
from jlremote.ssh.interfaces import Connection, Gateway
from tests.lab.programs import PATIENCE
from tests.link.fakes import FakeConnection, FakeDialer, FakeListener, FakePerson, until

UP = Condition(State.UP)
KEY = ("cont1", None)


Outcome = Endpoint | Exception


class Parts:
    """Forwards whose connection and whose proofs are the test's."""

    def __init__(self) -> None:
        self.connection: Connection = FakeConnection()
        self.outcomes: dict[int, queue.Queue[Outcome]] = {}
        self.asked: list[tuple[Connection, Endpoint]] = []
        self.listeners: list[FakeListener] = []
        self.observed: list[tuple[Connection, str]] = []
        self.warned: queue.Queue[tuple[str, float]] = queue.Queue()
        self.forwards = Forwards(
            cast(Supervisor, self),
            self.locate,
            self.listen,
            lambda *what: self.observed.append(what),
            lambda *limit: self.warned.put(limit),
        )

    def wait(self, timeout: float) -> Connection:
        return self.connection

    def locate(self, connection: Connection, known: Endpoint) -> Endpoint:
        self.asked.append((connection, known))
        outcome = self.proofs_on(connection).get(timeout=PATIENCE)
        if isinstance(outcome, Exception):
            raise outcome
        return outcome

    def proofs_on(self, connection: Connection) -> queue.Queue[Outcome]:
        return self.outcomes.setdefault(id(connection), queue.Queue())

    def listen(self, local_port: int, gateway: Gateway, key: ForwardKey) -> FakeListener:
        if local_port == 1:
            raise Busy("port `1` is taken")
        self.listeners.append(FakeListener(local_port, gateway, key))
        return self.listeners[-1]

    def reconnect(self) -> Connection:
        """Bring another connection up and begin to prove all on it."""
        self.connection = FakeConnection()
        self.forwards.prove_all(self.connection)
        return self.connection

    def settle(self, outcome: Outcome) -> None:
        """End the proof that goes on on the present connection."""
        self.proofs_on(self.connection).put(outcome)


def state_of(forward: SessionForward) -> str:
    return str(forward.to_json(UP)["state"])


def is_in(state: State, forward: SessionForward) -> Callable[[], bool]:
    return lambda: state_of(forward) == state


class Watched:
    """A supervisor that never pauses; its dialer waits for the test instead."""

    def __init__(self) -> None:
        self.dialer = FakeDialer()
        self.ups: list[Connection] = []
        self.wanted = True
        self.changed: Callable[[], bool] = lambda: False
        self.supervisor = Supervisor(
            self.dialer,
            wanted=lambda: self.wanted,
            on_up=self.ups.append,
            liveness=Liveness(lambda: Probing(0.01), lambda: self.changed()),
            backoff=Backoff(lambda: False, wait=lambda event, seconds: True),
        )
        self.supervisor.start()

    @property
    def state(self) -> State:
        return self.supervisor.condition.state

    def connect(self, connection: FakeConnection | None = None) -> FakeConnection:
        """Bring a connection up."""
        connection = connection or FakeConnection()
        self.dialer.outcomes.put(connection)
        assert self.supervisor.connection(FakePerson()) is connection
        return connection

    def dialed(self, times: int) -> None:
        """Wait until it was dialed that often."""
        until(lambda: len(self.dialer.askers) == times, f"attempt {times}")
