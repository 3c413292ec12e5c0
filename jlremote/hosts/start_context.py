"""The context that the steps of one `jlr start` or `jlr run` share."""

from __future__ import annotations

import secrets
from contextlib import ExitStack
from dataclasses import dataclass, field, replace

from jlremote.hosts.context import Context
from jlremote.hosts.requests import StartRequest, StopRequest, stop_command
from jlremote.laptop import sessions
from jlremote.laptop.sessions import SessionRecord
from jlremote.link.client.link import Link
from jlremote.place.runtimes.engine.kinds import Engine
from jlremote.place.runtimes.engine_containers import Containers
from jlremote.place.runtimes.runtime import Container, Runtime


@dataclass(frozen=True)
class StartContext:
    """One start in progress."""

    host: Link
    runtime: Runtime
    name: str  # the session's
    request: StartRequest
    context: Context  # the laptop's side
    undo: ExitStack  # the steps to take back if a later one fails
    environment: str = ""  # shell text that runs before a server without a container
    # A random word that identifies the traces of this start's server.
    launch_id: str = field(default_factory=lambda: secrets.token_hex(4))
    owner: str | None = None  # the other user whose session it is, joined on request
    user: str = ""  # the person's name on the host, where it was asked for
    loopback: bool = False  # whether the server listens there only, as the network is the host's
    sockets: bool = True  # whether the SSH server connects to unix sockets, as far as is known

    @property
    def engine(self) -> Engine:
        """The engine, if the runtime has containers."""
        return self.runtime.required_engine

    @property
    def container(self) -> str:
        """What means the session's container to the engine: its id where that is known."""
        runtime = self.runtime
        return runtime.reference(self.name) if isinstance(runtime, Containers) else self.name

    def with_engine(self, engine: Engine) -> StartContext:
        """Return the same start with another engine."""
        return self if engine == self.engine else replace(self, runtime=Containers(engine))

    def note(self, text: str) -> None:
        """Tell the person a fact about the start."""
        self.context.progress.note(text)

    def way_to_delete(self, container: Container, end: str) -> str:
        """Return the end of a hint: how to delete a container, empty for another user's."""
        if self.owner is not None:
            return ""
        command = stop_command(self.request.host, container.name, StopRequest(remove=True))
        return f"; `{command}` deletes it with all its files, {end}"

    @property
    def known(self) -> SessionRecord | None:
        """This laptop's record of the session, `None` for a new one."""
        return sessions.find(self.request.host, self.name)

    @property
    def server(self) -> int | None:
        """The port of the server that was chosen, by this request or an earlier one."""
        return self.request.server or (self.known.server if self.known else None)

    @property
    def open_allowed(self) -> bool:
        """Whether the server may have no token, by this request or an earlier one."""
        return self.request.allow_open or (self.known is not None and self.known.open_allowed)
