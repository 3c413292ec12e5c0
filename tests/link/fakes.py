"""Stand-ins for what the link is made of, driven by events instead of time."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any, Generic, TypeVar, cast

import pytest

from jlremote.errors import LinkLost, NeedsAuthentication
from jlremote.jupyter.endpoint import Endpoint, Server
from jlremote.link.connection.backoff import Backoff
from jlremote.link.connection.liveness import Liveness, Probing
from jlremote.link.connection.supervisor import Supervisor
from jlremote.link.forwards.link_forwards import Forwards
from jlremote.link.forwards.session_forward import SessionForward
from jlremote.link.wire.states import Condition, ForwardKey, State
from jlremote.place.host.addresses import Target
from jlremote.place.host.contract import Completed, Steps
from jlremote.place.runtimes.place import Place
from jlremote.questions import Asker, Question
from jlremote.ssh.connection import Connection
from jlremote.ssh.forward.connection_router import Gateway
from tests.lab.programs import PATIENCE, wait_until

T = TypeVar("T")


until = wait_until


def own_folders(patch: pytest.MonkeyPatch, folder: Path, *more: str) -> None:
    """Let a link have its files in a folder of the test's own."""
    folder.chmod(0o700)
    for name in ("XDG_RUNTIME_DIR", "XDG_STATE_HOME", *more):
        patch.setenv(name, str(folder))


class FakeConnection(Connection):
    """A connection that lives until it is closed, and answers every probe."""

    transport: Any = None
    description = "SSH-2.0-fake"
    reason = ""

    def __init__(self) -> None:
        self.gone = threading.Event()

    def probe(self, timeout: float) -> float:
        if self.gone.is_set():
            raise LinkLost("the connection broke")
        return 0.01

    def wait_closed(self, timeout: float | None = None) -> bool:
        return self.gone.wait(timeout)

    def close(self) -> None:
        self.gone.set()


class FakeDialer:
    """Dials as the test says: each call waits for the next outcome."""

    def __init__(self) -> None:
        self.outcomes: queue.Queue[Connection | Exception] = queue.Queue()
        self.askers: list[Asker] = []

    def __call__(self, asker: Asker) -> Connection:
        self.askers.append(asker)
        outcome = self.outcomes.get(timeout=PATIENCE)
        if isinstance(outcome, Exception):
            raise outcome
        return outcome


class FakePerson:
    def __init__(self, answer: str | None = None) -> None:
        self.questions: list[Question] = []
        self._answer = answer

    def ask(self, question: Question) -> str:
        self.questions.append(question)
        if self._answer is None:
            raise NeedsAuthentication("no person is there")
        return self._answer


class ScriptHost:
    """A `Host` whose scripts get what the test answers."""

    name = "dgx"

    def __init__(self, answer: Callable[[str], Completed]) -> None:
        self.tried: list[str] = []
        self._answer = answer

    def run(self, steps: Steps, *, timeout: float = 0, limit: int = 0) -> dict[str, Completed]:
        [(name, script)] = steps.items()
        self.tried.append(script)
        return {name: self._answer(script)}


class FakeListener:
    failure: str | None = None

    def __init__(self, local_port: int, _gateway: Gateway, _key: ForwardKey) -> None:
        self.local_port = local_port or 50000

    def start(self) -> None: ...

    def cut(self) -> None: ...

    def stop(self) -> None: ...


LISTEN: Any = FakeListener


class Call(Generic[T]):
    """A call that goes on in a thread of its own."""

    def __init__(self, function: Callable[[], T]) -> None:
        self._function = function
        self._result: T | None = None
        self._error: BaseException | None = None
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        try:
            self._result = self._function()
        except BaseException as error:  # noqa: BLE001  # handed to the caller of `result`
            self._error = error

    @property
    def running(self) -> bool:
        return self._thread.is_alive()

    def result(self) -> T:
        self._thread.join(PATIENCE)
        assert not self._thread.is_alive(), "the call did not return"
        if self._error is not None:
            raise self._error
        return self._result  # type: ignore[return-value]


def waiters(condition: threading.Condition) -> int:
    return len(condition._waiters)  # type: ignore[attr-defined]


def new_server(pid: int = 42) -> Server:
    return Server(
        pid=pid,
        process_start="1234",
        port=8888,
        base_url="/cont1/",
        token="secret",
        password=False,
        root_directory="/",
        loopback_only=False,
        loopback="127.0.0.1",
        ours=True,
        python="/usr/bin/python3",
    )


def new_endpoint(address: str = "172.17.0.2", pid: int = 42) -> Endpoint:
    """Return an endpoint that no test looks into."""
    server, place = new_server(pid), Place("docker", "cont1", "c0ffee", "2026-01-01T00:00:00Z")
    return Endpoint(place, 8888, server, server.python, Target(address, 8888))


UP = Condition(State.UP)
KEY = ("cont1", None)


Outcome = Endpoint | Exception


class Parts:
    """Forwards whose connection and whose proofs are the test's."""

    def __init__(self) -> None:
        self.connection: Connection = FakeConnection()
        self.outcomes: dict[int, queue.Queue[Outcome]] = {}
        self.asked: list[tuple[Connection, Endpoint]] = []
        self.warned: queue.Queue[tuple[str, float]] = queue.Queue()
        supervisor, warn = cast(Supervisor, self), lambda *limit: self.warned.put(limit)
        self.forwards = Forwards(supervisor, self.locate, LISTEN, lambda *_: None, warn)

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
        self.wanted = True
        self.changed: Callable[[], bool] = lambda: False
        self.supervisor = Supervisor(
            self.dialer,
            wanted=lambda: self.wanted,
            on_up=lambda _: None,
            liveness=Liveness(lambda: Probing(0.01), lambda: self.changed()),
            backoff=Backoff(lambda: False, wait=lambda event, seconds: True),
        )
        self.supervisor.start()

    @property
    def state(self) -> State:
        return self.supervisor.condition.state

    def connect(self, connection: FakeConnection | None = None) -> FakeConnection:
        connection = connection or FakeConnection()
        self.dialer.outcomes.put(connection)
        assert self.supervisor.connection(FakePerson()) is connection
        return connection

    def dialed(self, times: int) -> None:
        until(lambda: len(self.dialer.askers) == times, f"attempt {times}")
