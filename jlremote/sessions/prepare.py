"""The first steps of `jlr start`, taken before its modules are loaded.

They take a tenth of a second to load, the link's two tenths, so the link's process begins first.
"""

from __future__ import annotations

import threading
from contextlib import suppress

from jlremote.errors import JlrError
from jlremote.hosts.context import Context, known_way
from jlremote.hosts.requests import StartRequest
from jlremote.laptop import sessions
from jlremote.link.client.dial import start_link
from jlremote.link.wire.link_files import LinkFiles, link_files
from jlremote.place.runtimes.runtime import Runtime
from jlremote.selection.naming import session_of


def checked(request: StartRequest, context: Context) -> tuple[str | None, Runtime, Context]:
    """Check that a session can be started, and return its name if known, its runtime and its way.

    Raises:
        JlrError: it cannot; nothing is left behind.
    """
    known, runtime = session_of(request)
    sessions.check_writable()
    return known, runtime, known_way(request.host, context)


def begin(request: StartRequest, context: Context) -> None:
    """Start the process of the host's link, if there is none, without waiting until it listens.

    Raises:
        JlrError: the session cannot be started; nothing is left behind.
    """
    *_, way = checked(request, context)
    files = link_files(request.host, way.ssh_config and way.ssh_config.resolve())
    if not files.key.exists():  # else one runs or was killed; the first request finds out
        begun = threading.Event()
        threading.Thread(target=_start, args=(files, begun), daemon=True).start()
        begun.wait()


def _start(files: LinkFiles, begun: threading.Event) -> None:
    try:
        with suppress(JlrError, OSError):  # the first request fails likewise, and reports it
            start_link(files, begun.set)
    finally:
        begun.set()
