"""No containers: Jupyter runs on the host itself, as the user who logged in."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from jlremote.errors import Usage
from jlremote.host.contract import Completed, Steps
from jlremote.host.shell_text import command_line
from jlremote.runtimes.contract import Attachment, Container

SESSION_NAME = re.compile(r"[a-zA-Z0-9][a-zA-Z0-9_.-]*")

# util-linux has `--fork`, BusyBox has not.
_DETACH = """\
if setsid --help 2>&1 | grep -q -e --fork; then
  exec setsid --fork sh -c "$1" </dev/null >/dev/null 2>&1
fi
exec python3 -c 'import os, sys
if os.fork() == 0:
    os.setsid()
    os.execvp("sh", ["sh", "-c", sys.argv[1]])' "$1" </dev/null >/dev/null 2>&1
"""
# In quotes `~` is the home on the host, and who does not quote it has one's home here.
_IN_FOLDER = """\
jlr_folder=$1; shift
case $jlr_folder in '~'|'~/'*) jlr_folder=$HOME${jlr_folder#'~'};; esac
cd -- "$jlr_folder" && exec "$@"
"""


@dataclass(frozen=True)
class Bare:
    """The host itself, runtime `none`."""

    name: str = "none"
    engine: None = None
    # Other users share the host's loopback, and only that: the token keeps them out.
    bind_address: str = "127.0.0.1"
    has_containers: bool = False
    # `/tmp` belongs to everybody there, so it is the XDG state folder. Machines may share that one,
    # and a process id of one means nothing on another, so each has a folder of its own in it.
    servers_folder: str = "${XDG_STATE_HOME:-$HOME/.local/state}/jlr/servers/$(uname -n)"

    def place(self, name: str, host: str) -> str:
        """Return the host."""
        return f"`{host}`"

    def check_name(self, name: str) -> None:
        """Refuse a name that could not be a folder's name and a part of a URL."""
        if not SESSION_NAME.fullmatch(name):
            shown = name.encode("unicode_escape").decode("ascii")
            raise Usage(
                f"`{shown}` cannot be a session's name",
                hint="use letters, digits, `_`, `.` and `-`, starting with a letter or digit",
            )

    def survey(self, name: str, inside: str) -> Steps:
        """Tell which boot of which machine this is, and look for a server."""
        return {
            "container": "uname -n; cat /proc/sys/kernel/random/boot_id",
            "inside": self.inside(name, inside),
        }

    def read(self, name: str, results: Mapping[str, Completed]) -> Container | None:
        """Return the host, which is always there; its boot stands for the container's start."""
        machine, _, boot = results["container"].stdout.strip().partition("\n")
        return Container(
            id=machine, name=name, running=True, started_at=boot, addresses=("127.0.0.1",)
        )

    def inside(self, name: str, script: str) -> str:
        """Run `script` on the host and wait."""
        return command_line(("sh", "-c", script))

    def detached(self, name: str, script: str) -> str:
        """Run `script` on the host in a process session of its own, so that it outlives ours.

        Not with the shell's `&`, which makes the process ignore SIGINT for good.
        """
        return command_line(("sh", "-c", _DETACH, "sh", script))

    def launched(self, name: str, script: str, waiting: str) -> str:
        """Start one after the other: a shell's `&` would make Jupyter ignore SIGINT."""
        return f"{self.detached(name, script)}\n{self.inside(name, waiting)}"

    def relay_prefix(self, name: str) -> tuple[str, ...]:
        """Never needed: the host's loopback is within reach of a plain forward."""
        return ()

    def attached(
        self,
        name: str,
        argv: tuple[str, ...],
        how: Attachment,
        environment: Mapping[str, str],
    ) -> tuple[str, ...]:
        """Run it as it is; who logged in is who it runs as, and nobody is there to detach from."""
        for option, value, instead in (
            ("--user", how.user, "you are who logged in: `jlr … USER@HOST` is somebody else"),
            ("--detach-keys", how.detach_keys, "`~.` at the beginning of a line ends the shell"),
        ):
            if value is not None:
                raise Usage(
                    f"`{option}` is for a container, and `{name}` runs without one", hint=instead
                )
        variables = tuple(f"{variable}={value}" for variable, value in environment.items())
        began = ("env", *variables, *argv) if variables else argv
        if how.workdir is None:
            return began
        return ("sh", "-c", _IN_FOLDER, "sh", how.workdir, *began)
