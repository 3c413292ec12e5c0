"""The forwards of a link, by session and port."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

from jlremote.jupyter.endpoint import Endpoint
from jlremote.link.connection.supervisor import Supervisor
from jlremote.link.forwards.session_forward import Ending, Listen, Locate, SessionForward
from jlremote.link.wire.states import Condition
from jlremote.link.wire.status import ForwardKey
from jlremote.ssh.interfaces import Connection

# Reads the events of a runtime over a connection; repeating it is harmless.
Observe = Callable[[Connection, str], None]


# How long a proof may take that has begun.
_PROOF_SECONDS = 10.0


class Forwards:
    """All forwards of a link."""

    def __init__(
        self,
        supervisor: Supervisor,
        locate: Locate,
        listen: Listen,
        observe: Observe,
        ending: Ending = lambda *_: None,
    ) -> None:
        self._supervisor = supervisor
        self._locate = locate
        self._listen = listen
        self._observe = observe
        self._ending = ending
        self._lock = threading.Lock()
        self._forwards: dict[ForwardKey, SessionForward] = {}

    def __len__(self) -> int:
        return len(self._forwards)

    def __contains__(self, key: object) -> bool:
        return key in self._forwards

    def add(
        self,
        key: ForwardKey,
        local_port: int,
        endpoint: Endpoint,
        connection: Connection,
        *,
        seen: bool = True,
    ) -> SessionForward:
        """Forward `local_port` (0 for any) to `endpoint`; on the same port, only redirect.

        The endpoint is proved first, unless it was just `seen` there.

        Raises:
            Busy: the port is taken.
        """
        self._observe(connection, endpoint.place.runtime)
        with self._lock:
            present = self._forwards.get(key)
            if present is not None and local_port in (0, present.local_port):
                present.replace(endpoint, connection, seen=seen)
                return present
            forward = SessionForward(
                key,
                endpoint,
                connection,
                self._supervisor,
                self._locate,
                ending=self._ending,
                seen=seen,
            )
            forward.listen(self._listen, local_port)
            self._forwards[key] = forward
        if present is not None:
            present.stop()
        return forward

    def find(self, key: ForwardKey) -> SessionForward | None:
        return self._forwards.get(key)

    def is_sure(self, session: str, container_id: str, connection: Connection) -> bool:
        """Return whether a session's container is known to run, once its proof has ended."""
        forward = self.find((session, None))
        if forward is None or not forward.settled(_PROOF_SECONDS):
            return False
        return forward.is_sure(connection, container_id)

    def remove(self, key: ForwardKey) -> bool:
        """Stop a forward; return whether there was one."""
        with self._lock:
            forward = self._forwards.pop(key, None)
        if forward is not None:
            forward.stop()
        return forward is not None

    def stop(self) -> None:
        for key in tuple(self._forwards):
            self.remove(key)

    def prove_all(self, connection: Connection) -> None:
        """Prove every forward on a new connection, all at the same time."""
        for forward in tuple(self._forwards.values()):
            self._observe(connection, forward.place.runtime)
            forward.prove(connection)

    def changed(self, connection: Connection, runtime: str, event: str | None) -> None:
        """Prove the forwards again that an event is about; all of them if events were missed."""
        for forward in tuple(self._forwards.values()):
            about = filter(None, (forward.place.container_id, forward.network))
            if forward.place.runtime == runtime and (
                event is None or any(one in event for one in about)
            ):
                forward.changed(connection)

    def to_json(self, link: Condition) -> list[dict[str, Any]]:
        """Return all forwards for `status`; `link` is the link's own condition."""
        return [forward.to_json(link) for forward in tuple(self._forwards.values())]
