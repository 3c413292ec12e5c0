"""A container by what a person calls it: in full, short by a house's rule, or as elsewhere."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from jlremote.host.contract import Host
from jlremote.jupyter.locate import Survey, survey
from jlremote.runtimes.contract import Runtime
from jlremote.storage import settings
from jlremote.workflow.host.requests import StartRequest
from jlremote.workflow.selection import naming


def candidates(host: Host, runtime: Runtime, typed: str) -> Iterator[tuple[str, Survey]]:
    """Give what may be meant, the likeliest first, with what is there; `None` as container too.

    Args:
        host: where.
        runtime: in what.
        typed: the name.
    """
    names: tuple[str, ...] = (typed,)
    if runtime.has_containers:
        rule = str(settings.load().chosen(host.name, {}).get("name", naming.NAME))
        names = naming.names(StartRequest(host.name, typed, rule), host)
    first = survey(host, runtime, names[0], typed=typed)
    return with_others(names, first, lambda name: survey(host, runtime, name))


def with_others(
    names: tuple[str, ...], first: Survey, look: Callable[[str], Survey]
) -> Iterator[tuple[str, Survey]]:
    """Give what was found under the first name, then under the others.

    Last come the containers that the person has called so on another laptop, where the rule may be
    another one, or none.
    """
    yield names[0], first
    for name in (*names[1:], *first.called):
        yield name, look(name)
