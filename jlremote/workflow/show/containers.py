"""The containers of a host, of all users."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from jlremote.jupyter.presence import Presence, is_session, look, owner, runs_jupyter
from jlremote.workflow.host.context import Context
from jlremote.workflow.host.engines import engine_if_any
from jlremote.workflow.host.links import connect, link_on


@dataclass(frozen=True)
class ContainerReport:
    """A container of a host."""

    name: str
    id: str  # the engine's full id
    image: str | None
    status: str  # the engine's word: `running`, `paused`, `exited`, `created`, …
    jupyter: bool  # whether a Jupyter server runs in it
    session: bool  # whether jlr made it, or launched its Jupyter
    # its likely owner: the user in jlr's label, else of its processes, or of a home folder in it;
    # `None` if unknown
    owner: str | None
    gpus: str | None  # the GPUs as the engine was asked for them, `None` for none

    def to_json(self) -> dict[str, Any]:
        return dict(vars(self))


def presence(host: str, context: Context) -> Presence:
    """Return the containers and sessions of a host, of all users.

    Raises:
        JlrError: the host cannot be asked.
    """
    link = link_on(host, context)
    connect(link, context)
    with context.progress.step(f"Look for containers on {host}"):
        return look(link, engine_if_any(link))


def containers(host: str, context: Context) -> list[ContainerReport]:
    """Report all containers of a host, by name.

    Raises:
        JlrError: the host or its engine cannot be asked.
    """
    found = presence(host, context)
    if found.engine_failure:
        raise found.engine_failure
    return [
        ContainerReport(
            name=glimpse.container.name,
            id=glimpse.container.id,
            image=glimpse.container.image,
            status=glimpse.status,
            jupyter=runs_jupyter(glimpse),
            session=is_session(glimpse),
            owner=owner(glimpse),
            gpus=glimpse.container.gpus,
        )
        for glimpse in found.containers
    ]
