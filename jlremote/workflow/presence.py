"""What there is on a host, whoever has started it."""

from __future__ import annotations

from jlremote.jupyter.presence import Presence, is_session, look, owner, runs_jupyter
from jlremote.runtimes.overview import Glimpse
from jlremote.workflow.context import Context
from jlremote.workflow.engines import engine_if_any
from jlremote.workflow.links import connect, link_on
from jlremote.workflow.report import ContainerReport


def presence(host: str, context: Context) -> Presence:
    """Return what a host has, whoever has started it.

    Raises:
        JlrError: it cannot be asked.
    """
    link = link_on(host, context)
    connect(link, context)
    with context.progress.step(f"Look what {host} has"):
        return look(link, engine_if_any(link))


def containers(host: str, context: Context) -> list[ContainerReport]:
    """Return all containers of a host, by name.

    Raises:
        JlrError: it cannot be asked, or its engine does not tell.
    """
    found = presence(host, context)
    if found.engine_failure:
        raise found.engine_failure
    return [_container_report(glimpse) for glimpse in found.containers]


def _container_report(glimpse: Glimpse) -> ContainerReport:
    container = glimpse.container
    return ContainerReport(
        name=container.name,
        id=container.id,
        image=container.image,
        status=glimpse.status,
        jupyter=runs_jupyter(glimpse),
        session=is_session(glimpse),
        owner=owner(glimpse),
        gpus=container.gpus,
    )
