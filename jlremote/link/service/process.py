"""The link's process: it takes the lock, listens, says so, and only then loads the SSH library."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Mapping
from pathlib import Path

from jlremote.errors import JlrError
from jlremote.link.service import link_log, surroundings
from jlremote.link.service.link_socket import LinkSocket
from jlremote.link.wire.files import LinkFiles, link_files
from jlremote.link.wire.protocol import READY, error_line

IDLE_SECONDS = 600.0
IDLE_VARIABLE = "JLR_LINK_IDLE"
OLD_LINK_SECONDS = 10.0


def main() -> int:
    """Run the link of one host until it is no longer needed."""
    host, *config = sys.argv[1:]
    files = link_files(host, Path(config[0]) if config else None)
    folder = surroundings.leave()
    link_log.begin(files.log, host, os.environ)
    # Ctrl-C in the terminal is meant for the command; the link goes on.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    link_socket = LinkSocket(files)
    if link_socket.claim(OLD_LINK_SECONDS):  # an older link may just be ending
        try:
            _serve(files, link_socket, folder)
        finally:
            link_socket.close()
    else:
        _say(
            error_line(
                JlrError(
                    f"another link to `{host}` runs and does not answer; it may be an older jlr's",
                    hint="`ps aux | grep jlremote.link` shows its process: end it, and the next "
                    "command brings its forwards back",
                )
            )
        )
    return 0


def _serve(files: LinkFiles, link_socket: LinkSocket, folder: Path) -> None:
    try:
        listener = link_socket.open()
    except (JlrError, OSError) as trouble:  # of the folder or its disk
        _say(error_line(trouble))
        return
    _say(READY)
    # From here on commands can connect; they wait while the SSH library loads.
    from jlremote.link.service.server import assemble

    with assemble(files, folder, idle_seconds=idle_seconds(os.environ)) as server:
        link_socket.keep_open(
            lambda another: server.listen(another, link_socket.secret), lambda: server.goes_on
        )
        server.serve(listener, link_socket.secret)


def idle_seconds(environment: Mapping[str, str]) -> float:
    """Return how many seconds an idle link stays: `JLR_LINK_IDLE`, or 10 minutes."""
    try:
        return max(1.0, float(environment[IDLE_VARIABLE]))
    except (KeyError, ValueError):
        return IDLE_SECONDS


def _say(line: bytes) -> None:
    """Tell the command that started this link, and close its pipe."""
    os.write(sys.stdout.fileno(), line)
    nowhere = os.open(os.devnull, os.O_RDWR)
    os.dup2(nowhere, sys.stdout.fileno())
    os.close(nowhere)
