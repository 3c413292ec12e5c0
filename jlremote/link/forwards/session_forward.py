"""A forward that keeps its local port, and proves its far end before a byte flows."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from dataclasses import InitVar, dataclass, field
from typing import Any

from jlremote.errors import JlrError, Unreachable
from jlremote.jupyter.endpoint import WARNED_SECONDS, Endpoint
from jlremote.link.connection.supervisor import Supervisor
from jlremote.link.wire.states import Condition, State, without_history
from jlremote.link.wire.status import ForwardKey
from jlremote.place.host.addresses import Target
from jlremote.ssh.connection import Connection
from jlremote.ssh.forward.connection_router import Gateway
from jlremote.ssh.forward.forwarder import TunnelForward

log = logging.getLogger(__name__)

_PROOF_SECONDS = 10.0
# How long a proof that may become wrong at any time is believed.
UNSURE_SECONDS = 2.0
# The same for a server that has ended, or waits: a page that was left open asks all night.
ENDED_SECONDS = 5.0

# States that end by themselves, so that the next request causes another proof.
PASSING = {State.DOWN, State.CLOSED, State.TAKEN, State.PAUSED, State.RESTARTING, State.STARTING}
# States that may last, and that a person may end, by starting the server by hand.
ENDED = {State.JUPYTER_DEAD, State.STOPPED, State.IDLE_STOPPED, State.QUEUED, State.JOB_ENDED}
# States in which nothing is left that would close a connection.
CUT = {
    *(State.CONTAINER_GONE, State.CONTAINER_STOPPED, State.JOB_ENDED),
    *(State.RESTARTING, State.RESTARTED),
}
Locate = Callable[[Connection, Endpoint], Endpoint]
Listen = Callable[[int, Gateway, ForwardKey], TunnelForward]
# Takes a session and when its time limit ends it, some minutes before.
Ending = Callable[[str, float], None]


@dataclass(eq=False)
class SessionForward:
    """A local listener, and the endpoint that was proved on the present connection.

    Requests wait for the proof; one for an older connection or endpoint does not count.
    """

    key: ForwardKey
    endpoint: Endpoint
    connection: Connection
    supervisor: Supervisor
    locate: Locate
    ending: Ending = lambda *_: None
    seen: InitVar[bool] = True
    _changed: threading.Condition = field(default_factory=threading.Condition)
    _proof: int = 0
    _proving: bool = False
    _proved: bool = True
    _doubted: bool = False
    _asked_at: float = field(default_factory=time.monotonic)
    _condition: Condition = field(default_factory=lambda: Condition(State.UP))
    _listener: TunnelForward | None = None
    _warned: float | None = None  # the end of the time limit that was told

    def __post_init__(self, seen: bool) -> None:
        self.session, self.port = self.key
        self.name = self.session if self.port is None else f"{self.session}:{self.port}"
        self.replace(self.endpoint, self.connection, seen=seen)

    @property
    def local_port(self) -> int:
        assert self._listener is not None
        return self._listener.local_port

    def listen(self, listen: Listen, local_port: int) -> None:
        """Start to listen; `Busy` if the port is taken."""
        listener = listen(local_port, self, self.key)
        listener.start()
        with self._changed:
            self._listener = listener

    def stop(self) -> None:
        if self._listener is not None:
            self._listener.stop()

    def wait(self, timeout: float) -> tuple[Connection, Target]:
        """Return the connection and the target that was proved on it (see `Gateway.wait`)."""
        deadline = time.monotonic() + timeout
        connection = self.supervisor.wait(timeout)
        with self._changed:
            self.prove(connection)
            self._changed.wait_for(lambda: self._proved, max(0.0, deadline - time.monotonic()))
            if not self._proved:
                raise JlrError(f"the far end of `{self.name}` could not be checked in time")
            if self._condition.error is not None:
                raise without_history(self._condition.error)
            assert self.endpoint.target is not None
            return self.connection, self.endpoint.target

    def confirm(self, timeout: float) -> tuple[Connection, Target]:
        """Prove the target anew, however sure it seems, and return it (see `Gateway.confirm`)."""
        self.prove_again(self.connection)
        return self.wait(timeout)

    def recheck(self) -> None:
        """Prove it again, unless that was just done: the far end refuses (see `Gateway`)."""
        with self._changed:
            self._doubted = True
            self.prove(self.connection)

    def replace(self, endpoint: Endpoint, connection: Connection, *, seen: bool = True) -> None:
        """Lead to another endpoint."""
        with self._changed:
            self.endpoint = endpoint
            self.connection = connection
            self._proof += 1
            if endpoint.target is None or not seen:
                self.prove_again(connection)
            else:
                self._settle(self._proof, State.UP)

    def is_sure(self, connection: Connection, container_id: str) -> bool:
        """Return whether that container is known to run, without a question to the host."""
        with self._changed:
            is_proved = self._proved and self.connection is connection
            is_same = self.endpoint.place.container_id == container_id != ""
            return is_proved and is_same and self._condition.state is State.UP

    def settled(self, timeout: float) -> bool:
        """Wait up to `timeout` seconds for the end of the proof; return whether it has ended."""
        with self._changed:
            return self._changed.wait_for(lambda: self._proved, timeout)

    def prove(self, connection: Connection) -> None:
        """Begin a proof on a connection, unless the last one still holds; requests wait for it."""
        with self._changed:
            state = self._condition.state
            passing = self._doubted or state in PASSING | ENDED or self.endpoint.changeable
            sure = self._proving or (self._proved and not passing)
            pause = ENDED_SECONDS if state in ENDED else UNSURE_SECONDS
            holds = sure or time.monotonic() - self._asked_at < pause
            if self.connection is not connection or not holds:
                self.prove_again(connection)

    def prove_again(self, connection: Connection) -> None:
        """Begin a proof, however sure the last one seems, and even if one is under way."""
        with self._changed:
            self.connection = connection
            self._proof += 1
            self._proving, self._proved, self._doubted = True, False, False
            proof = (self._proof, connection, self.endpoint)
        try:
            threading.Thread(target=self._find, args=proof, daemon=True).start()
        except RuntimeError as full:  # no thread is left: requests must not wait for ever
            self._settle(proof[0], State.DOWN, JlrError(f"cannot check `{self.name}`: {full}"))

    def _find(self, proof: int, connection: Connection, known: Endpoint) -> None:
        try:
            endpoint = self.locate(connection, known)
        except Unreachable as broken:
            # This tells nothing of the endpoint: requests wait for the next connection.
            log.info("%s could not be checked: %s", self.name, broken)
            self._end_proof(proof)
        except Exception as error:  # noqa: BLE001  # requests must not wait for ever
            reason = error if isinstance(error, JlrError) else JlrError(f"bug: {error!r}")
            if not reason.state:
                log.warning("%s could not be checked: %r", self.name, error)
            self._settle(proof, State(reason.state or State.DOWN), reason)
        else:
            self._settle(proof, State.UP, endpoint=endpoint)

    def _settle(
        self,
        proof: int,
        state: State,
        error: JlrError | None = None,
        *,
        endpoint: Endpoint | None = None,
    ) -> None:
        with self._changed:
            if self._end_proof(proof):
                known = self.endpoint.target
                moved = endpoint is not None and known is not None and endpoint.target != known
                if (moved or state in CUT) and self._listener is not None:
                    self._listener.cut()  # the far end is gone and never closes a connection
                self._proved = True
                self._condition = self._condition.then(state, error)
                self.endpoint = endpoint or self.endpoint
                self._changed.notify_all()

    def heed_limit(self) -> None:
        """Tell once, some minutes before, that a time limit ends the session."""
        until = self.endpoint.until
        if until is None or until == self._warned or self._condition.state is not State.UP:
            return
        if not 0 < until - time.time() <= WARNED_SECONDS:
            return
        self.prove_again(self.connection)
        if not self.settled(_PROOF_SECONDS) or self.endpoint.until == until:
            self._warned = until
            self.ending(self.session, until)

    def _end_proof(self, proof: int) -> bool:
        with self._changed:
            if proof != self._proof:
                return False
            self._proving = False
            self._asked_at = time.monotonic()
            return True

    def to_json(self, link: Condition) -> dict[str, Any]:
        """Return the forward as it crosses the link's socket, the endpoint's token included."""
        with self._changed:
            condition = self._condition if link.state is State.UP else link
            assert self._listener is not None
            return condition.to_json() | {
                "session": self.session,
                "port": self.port,
                "local_port": self.local_port,
                "failure": self._listener.failure,
                "endpoint": self.endpoint.to_json(),
            }
