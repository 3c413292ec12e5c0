"""Forwards of a link whose connection and proofs are the test's."""

from __future__ import annotations

import queue
from collections.abc import Callable
from typing import cast

from jlremote.errors import Busy
from jlremote.jupyter.endpoint import Endpoint
from jlremote.link.connection.supervisor import Supervisor
from jlremote.link.forwards.link_forwards import Forwards
from jlremote.link.forwards.session_forward import SessionForward
from jlremote.link.wire.states import Condition, State
from jlremote.link.wire.status import ForwardKey
from jlremote.ssh.connection import Connection
from jlremote.ssh.forward.connection_router import Gateway
from tests.lab.programs import PATIENCE
from tests.link.fakes import FakeConnection, FakeListener

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
