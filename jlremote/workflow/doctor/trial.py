"""What the end of `jlr doctor`'s chain is tried on."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass

from jlremote.doctor.host_facts import HostFacts
from jlremote.errors import JlrError
from jlremote.jupyter.locate import survey
from jlremote.jupyter.server import Server
from jlremote.link.client.link import Link
from jlremote.runtimes.contract import Container, Runtime
from jlremote.storage.sessions import SessionRecord
from jlremote.workflow.host.requests import StartRequest


@dataclass(frozen=True)
class RunningSession:
    """A session that runs, which is looked at and left as it is."""

    record: SessionRecord
    container: Container
    server: Server


def running(link: Link, runtime: Runtime, record: SessionRecord) -> RunningSession | None:
    """Return a session of the laptop's as it runs, `None` if it does not, or nobody can tell."""
    with suppress(JlrError):  # the checks tell what is wrong with the engine
        found = survey(link, runtime, record.name)
        if found.container is not None and found.server is not None:
            return RunningSession(record, found.container, found.server)
    return None


@dataclass(frozen=True)
class Trial:
    """What the end of the chain is tried on.

    Attributes:
        link: the host.
        facts: what is known of it.
        runtime: in what.
        running: a session there, `None` for none that runs.
        request: what a new one would be started with; its image may be `None`.
    """

    link: Link
    facts: HostFacts
    runtime: Runtime
    running: RunningSession | None
    request: StartRequest

    @property
    def ready(self) -> tuple[str, ...]:
        """The checks that must be well before a container can be had."""
        if not self.runtime.has_containers:
            return ("shell",)
        if self.running is not None or self.request.image is None:
            return ("permission",)
        return ("permission", "disk", "image", "architecture")
