"""GPUs that a session's container has lost while it ran."""

from __future__ import annotations

from contextlib import suppress

from jlremote.errors import JlrError
from jlremote.gpus import lost
from jlremote.host.contract import run_script
from jlremote.link.client.link import Link
from jlremote.runtimes.table import runtime_of
from jlremote.storage.sessions import SessionRecord


def fault(link: Link, record: SessionRecord) -> JlrError | None:
    """Return why a session's container has lost its GPUs, `None` if it has not.

    It comes second to what the command does, so a check that fails finds nothing.
    """
    runtime = runtime_of(record)
    if record.gpus is None or not runtime.has_containers:
        return None
    restart = runtime.shown("restart", record.name)
    with suppress(JlrError):
        found = run_script(link, runtime.inside(record.name, lost.CHECK))
        return lost.read(found.stdout, record.name, restart)
    return None
