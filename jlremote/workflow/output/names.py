"""The notebooks of a session that are recorded, for completion."""

from __future__ import annotations

from dataclasses import replace

from jlremote.host.contract import run_script
from jlremote.jupyter.scripts import session_directory
from jlremote.link.wire.states import State
from jlremote.output import pieces
from jlremote.runtimes.table import runtime_of
from jlremote.storage import sessions
from jlremote.workflow.host.context import Context
from jlremote.workflow.host.links import ASKS_NOTHING, link_of

SECONDS = 3.0


def recorded_names(selector: str | None, context: Context) -> list[str]:
    """Return the paths of notebooks, none where the host is not connected right now.

    Raises:
        JlrError: the session is not known here, or the host does not answer in time.
    """
    session = sessions.choose(selector)
    link = link_of(session, replace(context, asker=ASKS_NOTHING))
    if link.status().state != State.UP:
        return []
    runtime = runtime_of(session)
    script = f"{session_directory(runtime, session.name)}{pieces.NAMES}"
    done = run_script(link, runtime.inside(session.name, script), timeout=SECONDS)
    return pieces.names(done.stdout)
