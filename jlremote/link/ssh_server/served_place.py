"""Where a client's commands run, and the scripts that take them there."""

from __future__ import annotations

import os
import secrets
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any

from jlremote.errors import Busy, JlrError, LinkLost
from jlremote.place.host import process_mark
from jlremote.place.host.shell_text import KEEP_ODD_VARIABLES, command_line
from jlremote.place.runtimes.runtime import Attachment, Runtime
from jlremote.place.runtimes.scripts import shell_scripts
from jlremote.place.runtimes.table import for_container, runtime_named
from jlremote.remote import sending
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


@dataclass(frozen=True)
class ServedPlace:
    """A session, a container or the host itself, as a client reaches it."""

    selector: str  # what commands of jlr take: `HOST/NAME` or `HOST`
    session: str | None  # the session's name, `None` for what is none
    runtime: Runtime
    name: str  # of the session or container, or the host's
    container_id: str = ""  # the engine's full id of a session's container

    def command(self, argv: tuple[str, ...], attached: Attachment, mark: str, given: str) -> str:
        """Return the script that runs `argv`, an empty one for a shell; `mark` marks it.

        Its stdin begins with the variables that are `given`, as `variables.parted` writes them.
        """
        return shell_scripts.script(
            self.runtime, self.name, attached, argv, mark, given=given, marked=True
        )

    def shell(self, request: Mapping[str, Any]) -> str:
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
        script = shell_scripts.script(self.runtime, self.name, attached, argv, mark, sized=fits)
        return shell_scripts.kept_script(script, kept) if kept else script

    def relay(self) -> tuple[str, ...]:
        """Return the argv that runs Python where the place's network is, with our stdin."""
        return (*self.runtime.relay_prefix(self.name), *sending.PYTHON)

    @property
    def is_on_host(self) -> bool:
        """Whether the host's SSH server reaches all that the place's own programs reach."""
        return not self.runtime.relay_prefix(self.name)

    def signal(self, mark: str, signal: str) -> str:
        """Return the script that sends a signal to the command marked with `mark`."""
        argv = process_mark.signal_argv(mark, signal)
        return command_line(self.runtime.attached(self.name, argv, Attachment(), {})) + "\n"


def served_place(request: Mapping[str, Any]) -> ServedPlace:
    """Return the place that a request of `jlr proxy` names."""
    runtime = for_container(runtime_named(request["runtime"]), request["container_id"])
    return ServedPlace(
        request["selector"], request["session"], runtime, request["name"], request["container_id"]
    )


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
