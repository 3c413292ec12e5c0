"""`jlr disconnect`: which links it ends, and what ends with them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from jlremote.errors import JlrError
from jlremote.link.client.dial import LinkStuck
from jlremote.link.client.link import Link
from jlremote.link.wire.files import destinations
from jlremote.storage import sessions
from jlremote.text import one_line
from jlremote.workflow.host.context import Context
from jlremote.workflow.host.links import link_to
from jlremote.workflow.selection import destruction
from jlremote.workflow.selection.destruction import Destruction


def disconnect(host: str | None, context: Context, *, yes: bool) -> Iterator[str]:
    """End the links to one host, or all links of this user; yield the hosts of ended links.

    Lists connect none of them again by themselves.

    Raises:
        JlrError: the person said no, or one does not end; the others have ended.
    """
    links = _links(host, context)
    silent: list[Link] = []
    losses: list[str] = []
    refused: list[JlrError] = []
    for link in tuple(links):
        try:
            losses += dict.fromkeys(link.status().work)
        except LinkStuck as stuck:  # the next question would only take as long again
            links.remove(link)
            silent.append(link)
            refused.append(stuck)
        except JlrError:  # none runs, or one of another version
            continue
    where = "all hosts" if host is None else host
    planned = Destruction(f"Disconnect from {where}?", tuple(map(one_line, losses)))
    destruction.confirm(planned, context, yes=yes)
    for link in silent:
        link.stay_disconnected()
    ended: set[str] = set()
    for link in links:
        try:
            if link.disconnect() and link.name not in ended:
                ended.add(link.name)
                yield link.name
        except JlrError as error:
            refused.append(error)
    if refused:
        raise refused[0]


def _links(host: str | None, context: Context) -> list[Link]:
    """Return the links that may run, each with the ssh configuration that it was started with."""
    known = sessions.load_all()
    ways = [(r.host, Path(r.ssh_config) if r.ssh_config else None) for r in known]
    ways += destinations()
    if host is not None:
        ways.append((host, context.ssh_config))
    distinct = {
        (name, None if config is None else config.resolve())
        for name, config in ways
        if host in (None, name)
    }
    links = [link_to(name, replace(context, ssh_config=config)) for name, config in distinct]
    return sorted(links, key=lambda link: link.name)
