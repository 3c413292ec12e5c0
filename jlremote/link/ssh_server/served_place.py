"""Where a client's commands run, and the scripts that take them there."""

from __future__ import annotations

import os
import secrets
import threading
import time
from collections.abc import Callable, Mapping
from fnmatch import fnmatchcase
from typing import Any

from jlremote.errors import Busy, JlrError, LinkLost
from jlremote.place.host.shell_text import KEEP_ODD_VARIABLES
from jlremote.place.runtimes.place import Place
from jlremote.place.runtimes.runtime import Attachment
from jlremote.place.runtimes.scripts import shell_scripts
from jlremote.ssh.connection import Connection

# Variables that a client may set, as OpenSSH on Debian has it, and git's own.
ALLOWED = ("LANG", "LC_*", "COLORTERM", "NO_COLOR", "GIT_PROTOCOL")

# How long a command waits for the link's connection, and for a free session on it.
CONNECTION_SECONDS = 30.0
SESSION_SECONDS = 15.0
_PAUSE = 0.1
FAILED = 255  # as ssh, where it is not the command's own status
PIPE_CLOSED = 141  # 128 + SIGPIPE

Connect = Callable[[float], Connection]

# sshd gives a command to the user's login shell; a container's is bash where it has one.
_LINE = f"""\
[ -x "${{SHELL:-}}" ] || SHELL=$(command -v bash || command -v sh)
set -- "$SHELL" -c "$1"
{KEEP_ODD_VARIABLES}exec "$@"
"""


def shell_script(place: Place, request: Mapping[str, Any]) -> str:
    """Return the script for a request of `jlr shell`.

    Raises:
        Usage: the runtime has no such option.
    """
    terminal = request["terminal"]
    size = None if terminal is None else os.terminal_size(map(int, terminal["size"]))
    attached = Attachment(size, request["user"], request["workdir"], request["detach_keys"])
    argv, kept = tuple(request["command"]), request["kept"] or {}
    if kept.get("begun"):
        return shell_scripts.again_script(kept)
    mark, fits = kept.get("mark") or secrets.token_hex(8), kept.get("unasked", True)
    script = shell_scripts.script(place.runtime, place.name, attached, argv, mark, sized=fits)
    return shell_scripts.kept_script(script, kept) if kept else script


def line_argv(line: str) -> tuple[str, ...]:
    """Return the argv that runs a client's command line."""
    return ("sh", "-c", _LINE, "sh", line)


def allowed(environment: Mapping[str, str]) -> dict[str, str]:
    """Return the variables that a client may set, and that shells take."""
    return {
        name: value
        for name, value in environment.items()
        if name.isascii() and name.isidentifier()
        if any(fnmatchcase(name, pattern) for pattern in ALLOWED)
    }


def failure_line(error: JlrError) -> str:
    """Return the line for the stderr of a client whose command failed."""
    return f"jlr: {error.message}; {error.hint}" if error.hint else f"jlr: {error.message}"


def on_free_session(
    connect: Connect, cancelled: threading.Event, execute: Callable[[Connection], int]
) -> int:
    """Execute a command once the link is connected and has a free session.

    Raises:
        LinkLost: the client has gone meanwhile, or the connection broke.
        Busy: none was free for `SESSION_SECONDS`.
    """
    until = time.monotonic() + SESSION_SECONDS
    while True:
        connection = connect(CONNECTION_SECONDS)
        try:
            return execute(connection)
        except Busy:
            if time.monotonic() > until:
                raise
            if cancelled.wait(_PAUSE):
                raise LinkLost("the client has gone") from None
