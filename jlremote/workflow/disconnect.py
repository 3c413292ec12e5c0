"""`jlr disconnect`: end links; what runs on the hosts goes on."""

from __future__ import annotations

from jlremote.storage import sessions
from jlremote.workflow.context import Context
from jlremote.workflow.links import link_to


def disconnect(host: str | None, context: Context) -> list[str]:
    """End the link to one host, or to all that have sessions; return whose links were ended."""
    hosts = {host} if host is not None else {record.host for record in sessions.load_all()}
    return [name for name in sorted(hosts) if link_to(name, context).shut_down()]
