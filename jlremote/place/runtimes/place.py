"""The one place: where a session, another container or a host itself has programs and ports."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from jlremote.laptop.sessions import SessionRecord
    from jlremote.place.runtimes.runtime import Container, Runtime


@dataclass(frozen=True)
class Place:
    """A session, another container or a host, by facts that do not change while it lives."""

    runtime_name: str
    name: str  # of the session or container, or the host's
    container_id: str = ""  # the engine's; a container of the same name may replace it
    started_at: str = ""  # when it was started, as the engine says it; empty where it was not asked
    called: str = ""  # the container's name by now, where it was renamed
    selector: str = ""  # what commands of jlr take: `HOST/NAME` or `HOST`
    session: str | None = None  # the session's name where a command runs, `None` for what is none

    @property
    def runtime(self) -> Runtime:
        """The runtime, for this container even if it was renamed (`Usage`: there is none)."""
        # Loaded here: a short command names the place, and only the link runs something in it.
        from jlremote.place.runtimes.table import for_container, runtime_named

        return for_container(runtime_named(self.runtime_name), self.container_id)

    @property
    def is_host(self) -> bool:
        """Whether a command runs on the host itself, and in no session."""
        return self.session is None and self.runtime_name == "none"

    def kept(self, label: str) -> str:
        """Return tmux's name of a shell that is kept there; tmux takes neither `.` nor `:`."""
        place = "host" if self.is_host else f"{self.runtime_name}/{self.name}"
        return "/".join(filter(None, (place, label))).replace(" ", "-").replace(".", "+")


def of_record(record: SessionRecord) -> Place:
    """Return the place of a session's commands."""
    facts = (record.runtime, record.name, record.container_id)
    return Place(*facts, selector=record.selector, session=record.name)


def of_container(runtime: Runtime, container: Container) -> Place:
    """Return the place of the session that is in `container` now."""
    facts = (runtime.name, container.name, container.id, container.started_at)
    return Place(*facts, called=container.renamed)
