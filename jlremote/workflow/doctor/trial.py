"""The session or new container on which `jlr doctor` tries the end of the chain."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass

from jlremote.doctor.host_facts import HostFacts
from jlremote.errors import JlrError
from jlremote.jupyter.server import Server
from jlremote.jupyter.survey import survey
from jlremote.link.client.link import Link
from jlremote.runtimes.contract import Container, Runtime
from jlremote.runtimes.table import runtime_of
from jlremote.storage.sessions import SessionRecord
from jlremote.workflow.host.requests import StartRequest


@dataclass(frozen=True)
class RunningSession:
    """A session that runs; it is examined and left as it is."""

    record: SessionRecord
    container: Container
    server: Server


def running(link: Link, record: SessionRecord) -> RunningSession | None:
    """Return a session of this laptop that runs, `None` if it does not or cannot be asked."""
    with suppress(JlrError):  # the checks of the engine report it
        found = survey(link, runtime_of(record), record.name)
        if found.container is not None and found.server is not None:
            return RunningSession(record, found.container, found.server)
    return None


@dataclass(frozen=True)
class Trial:
    """The session or new container on which the end of the chain is tried.

    `running` is a session that runs there; `request` is that for a new one, maybe without image.
    """

    link: Link
    facts: HostFacts
    runtime: Runtime
    running: RunningSession | None
    request: StartRequest

    @property
    def ready(self) -> tuple[str, ...]:
        """The checks that must have passed before a container can be tried."""
        if not self.runtime.has_containers:
            return ("shell",)
        if self.running is not None or self.request.image is None:
            return ("permission",)
        return ("permission", "disk", "image", "architecture")
