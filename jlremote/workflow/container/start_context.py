"""What the steps of `jlr start` share."""

from __future__ import annotations

import secrets
from contextlib import ExitStack
from dataclasses import dataclass, field

from jlremote.link.client.link import Link
from jlremote.runtimes.contract import Runtime
from jlremote.runtimes.engine.engine import Engine
from jlremote.storage import sessions
from jlremote.storage.sessions import SessionRecord
from jlremote.workflow.host.context import Context
from jlremote.workflow.host.requests import StartRequest


@dataclass(frozen=True)
class StartContext:
    """What the steps of one `jlr start` or `jlr run` share.

    Attributes:
        host: where.
        runtime: in what.
        name: the session's name.
        request: what was asked for.
        context: the laptop's side.
        undo: what to take back if a later step fails, in reverse order.
        loopback: whether the container's network is the host's, where only its loopback is safe.
        environment: shell text that a server is launched after; without an engine only.
        launch_id: what tells the traces of a server that this start launches.
    """

    host: Link
    runtime: Runtime
    name: str
    request: StartRequest
    context: Context
    undo: ExitStack
    environment: str = ""
    launch_id: str = field(default_factory=lambda: secrets.token_hex(4))
    loopback: bool = False

    @property
    def engine(self) -> Engine:
        """The engine; asked for only where there are containers."""
        assert self.runtime.engine is not None
        return self.runtime.engine

    @property
    def known(self) -> SessionRecord | None:
        """What this laptop remembers of the session."""
        return sessions.find(self.request.host, self.name)

    @property
    def open_allowed(self) -> bool:
        """Whether its server may let everybody in: it was said so now, or once."""
        return self.request.allow_open or (self.known is not None and self.known.open_allowed)
