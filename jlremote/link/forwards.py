"""The forwards of a link: each keeps its port, and proves what is behind it before a byte flows."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from typing import Any, Protocol

from jlremote.errors import JlrError
from jlremote.host.target import Target
from jlremote.jupyter.locate import ContainerGone, JupyterDead
from jlremote.jupyter.server import Endpoint
from jlremote.link.states import Condition, State
from jlremote.ssh.contract import Connection, Forward, Gateway

log = logging.getLogger(__name__)

Locate = Callable[[Connection, Endpoint], Endpoint]
Listen = Callable[[int, Gateway], Forward]


class Connections(Protocol):
    """Where a forward gets its connection from."""

    def wait(self, timeout: float) -> Connection:
        """Return the live connection, waiting for it."""
        ...


class SessionForward:
    """One session's listener, and the endpoint that was proved on the present connection."""

    def __init__(
        self, name: str, endpoint: Endpoint, connection: Connection, connections: Connections
    ) -> None:
        self.name = name
        self._connections = connections
        self._changed = threading.Condition()
        self._endpoint = endpoint
        self._proved_on: Connection | None = connection
        self._condition = Condition(State.UP)
        self._listener: Forward | None = None

    @property
    def local_port(self) -> int:
        """The TCP port on 127.0.0.1."""
        assert self._listener is not None
        return self._listener.local_port

    def listen(self, listen: Listen, local_port: int) -> None:
        """Start to listen.

        Raises:
            Busy: the port is taken.

        """
        listener = listen(local_port, self)
        listener.start()
        self._listener = listener

    def stop(self) -> None:
        """Release the port."""
        if self._listener is not None:
            self._listener.stop()

    def wait(self, timeout: float) -> tuple[Connection, Target]:
        """Return the connection and the target that was proved on it (see `Gateway`)."""
        deadline = time.monotonic() + timeout
        connection = self._connections.wait(timeout)
        with self._changed:
            self._changed.wait_for(
                lambda: self._proved_on is connection, max(0.0, deadline - time.monotonic())
            )
            if self._proved_on is not connection:
                raise JlrError(f"what runs behind `{self.name}` could not be checked in time")
            if self._condition.error is not None:
                raise self._condition.error
            return connection, self._endpoint.target

    def replace(self, endpoint: Endpoint, connection: Connection) -> None:
        """Lead to another endpoint from now on, which the caller has just seen to be there."""
        self._settle(connection, Condition(State.UP), endpoint)

    def prove(self, connection: Connection, locate: Locate) -> None:
        """Find the endpoint again on a new connection; until then requests wait."""
        try:
            endpoint = locate(connection, self._endpoint)
        except ContainerGone as gone:
            self._settle(connection, Condition(State.CONTAINER_GONE, gone))
        except JupyterDead as dead:
            self._settle(connection, Condition(State.JUPYTER_DEAD, dead))
        except JlrError as error:
            log.warning("%s could not be checked: %s", self.name, error)
            self._settle(connection, Condition(State.DOWN, error))
        else:
            self._settle(connection, Condition(State.UP), endpoint)

    def _settle(
        self, connection: Connection, condition: Condition, endpoint: Endpoint | None = None
    ) -> None:
        with self._changed:
            self._proved_on = connection
            self._condition = condition
            self._endpoint = endpoint or self._endpoint
            self._changed.notify_all()

    def to_json(self) -> dict[str, Any]:
        """Return the forward as it crosses the link's socket, the endpoint's token included."""
        with self._changed:
            facts = {"name": self.name, "local_port": self.local_port}
            return facts | self._condition.to_json() | {"endpoint": self._endpoint.to_json()}


class Forwards:
    """All forwards of a link, by the session's name."""

    def __init__(self, connections: Connections, locate: Locate, listen: Listen) -> None:
        self._connections = connections
        self._locate = locate
        self._listen = listen
        self._lock = threading.Lock()
        self._forwards: dict[str, SessionForward] = {}

    def __len__(self) -> int:
        return len(self._forwards)

    def __contains__(self, name: object) -> bool:
        return name in self._forwards

    def add(
        self, name: str, local_port: int, endpoint: Endpoint, connection: Connection
    ) -> SessionForward:
        """Forward `local_port` (0 for any) to `endpoint`; on the same port, only redirect.

        Raises:
            Busy: the port is taken.

        """
        with self._lock:
            present = self._forwards.get(name)
            if present is not None and local_port in (0, present.local_port):
                present.replace(endpoint, connection)
                return present
            forward = SessionForward(name, endpoint, connection, self._connections)
            forward.listen(self._listen, local_port)
            self._forwards[name] = forward
        if present is not None:
            present.stop()
        return forward

    def remove(self, name: str) -> bool:
        """Stop a forward; return whether there was one."""
        with self._lock:
            forward = self._forwards.pop(name, None)
        if forward is not None:
            forward.stop()
        return forward is not None

    def stop(self) -> None:
        """Stop them all."""
        for name in tuple(self._forwards):
            self.remove(name)

    def prove_all(self, connection: Connection) -> None:
        """Prove every forward on a new connection, side by side."""
        for forward in tuple(self._forwards.values()):
            threading.Thread(
                target=forward.prove, args=(connection, self._locate), daemon=True
            ).start()

    def to_json(self) -> list[dict[str, Any]]:
        """Return all forwards for `status`."""
        return [forward.to_json() for forward in tuple(self._forwards.values())]
