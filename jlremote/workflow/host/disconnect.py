"""`jlr disconnect`: end links; what runs on the hosts continues."""

from __future__ import annotations

from jlremote.storage import sessions
from jlremote.workflow.host.context import Context
from jlremote.workflow.host.links import link_of, link_to


def disconnect(host: str | None, context: Context) -> list[str]:
    """End the links to one host, or to all hosts of sessions; return the hosts whose link ended."""
    links = [link_of(record, context) for record in sessions.load_all()]
    if host is not None:
        links = [link_to(host, context), *(link for link in links if link.name == host)]
    return sorted({link.name for link in links if link.shut_down()})
