"""Resolve a typed name to containers: in full, by the naming template, or by another laptop's."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from jlremote.host.contract import Host
from jlremote.jupyter.survey import Survey, survey
from jlremote.runtimes.contract import Runtime
from jlremote.storage import settings
from jlremote.workflow.host.requests import StartRequest
from jlremote.workflow.selection import naming


def candidates(host: Host, runtime: Runtime, typed: str) -> Iterator[tuple[str, Survey]]:
    """Yield the names that `typed` may stand for, the likeliest first, each with its survey."""
    names: tuple[str, ...] = (typed,)
    if runtime.has_containers:
        rule = str(settings.load().chosen(host.name, {}).get("name", naming.NAME))
        names = naming.names(StartRequest(host.name, typed, rule), host)
    first = survey(host, runtime, names[0], typed=typed)
    return with_others(names, first, lambda name: survey(host, runtime, name))


def with_others(
    names: tuple[str, ...], first: Survey, look: Callable[[str], Survey]
) -> Iterator[tuple[str, Survey]]:
    """Yield the first name with its survey, then the others.

    Last come the containers that were typed so on another laptop, with another naming template.
    """
    yield names[0], first
    for name in (*names[1:], *first.called):
        yield name, look(name)
