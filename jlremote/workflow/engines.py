"""Which engine a command means that speaks of a host, and of no session."""

from __future__ import annotations

from jlremote.link.client import Link
from jlremote.runtimes.engine import DOCKER, Engine
from jlremote.runtimes.table import runtime_named
from jlremote.storage import sessions


def engine_on(host: Link) -> Engine:
    """Return the engine of a host's latest session, whose images are most likely meant."""
    known = (
        runtime_named(record.runtime) for record in sessions.load_all() if record.host == host.name
    )
    return next((runtime.engine for runtime in known if runtime.engine), DOCKER)
