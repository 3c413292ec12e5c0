"""The runtime `none`: Jupyter runs on the host itself, as the login user."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import NoReturn

from jlremote.errors import Usage
from jlremote.host.contract import Completed, Steps
from jlremote.host.shell_text import command_line
from jlremote.runtimes.contract import Attachment, Container
from jlremote.text import one_line

SESSION_NAME = re.compile(r"[a-zA-Z0-9][a-zA-Z0-9_.-]*")

# util-linux has `--fork`, BusyBox has not.
_DETACH = """\
if setsid --help 2>&1 | grep -q -e --fork; then
  exec setsid --fork "$@" </dev/null >/dev/null 2>&1
fi
exec python3 -c 'import os, sys
if os.fork() == 0:
    os.setsid()
    os.execvp(sys.argv[1], sys.argv[1:])' "$@" </dev/null >/dev/null 2>&1
"""
# A quoted `~` is the home on the host; the local shell expands an unquoted one.
_IN_FOLDER = """\
jlr_folder=$1; shift
case $jlr_folder in '~'|'~/'*) jlr_folder=$HOME${jlr_folder#'~'};; esac
cd -- "$jlr_folder" && exec "$@"
"""
# For a shell in a terminal: as a login shell it may set a PATH of its own.
PATH_KEPT = "JLR_PATH"
KEEP_PATH = f"{PATH_KEPT}=$PATH; export {PATH_KEPT}; "
# `$1` names a session; runs the other arguments with the PATH of the Python that was named for it.
_WITH_PATH = """\
jlr_path="FOLDER"/$1/PATH_FILE; shift
[ ! -e "$jlr_path" ] || { . "$jlr_path"; KEEP_PATH}
exec "$@"
"""
PATH_FILE = "path"


def check_session_name(name: str) -> None:
    """Refuse a session's name that is not fit for a folder and a URL (`Usage`)."""
    if not SESSION_NAME.fullmatch(name):
        raise Usage(
            f"invalid session name `{one_line(name)}`",
            hint="use letters, digits, `_`, `.` and `-`, starting with a letter or digit",
        )


def detached(argv: tuple[str, ...]) -> str:
    """Return the command that runs argv in a process session of its own, so it outlives ours.

    The shell's `&` would make it ignore SIGINT for good (see the room's decisions).
    """
    return command_line(("sh", "-c", _DETACH, "sh", *argv))


def attached(
    name: str, argv: tuple[str, ...], how: Attachment, environment: Mapping[str, str]
) -> tuple[str, ...]:
    """Return the command that runs argv in a folder, with variables, as the login user.

    Raises:
        Usage: an option is only for containers.
    """
    for option, value, instead in (
        ("--user", how.user, "`jlr … USER@HOST` logs in as another user"),
        ("--detach-keys", how.detach_keys, "`~.` at the beginning of a line ends the shell"),
    ):
        if value is not None:
            raise Usage(
                f"`{option}` is for a container of an engine, and `{name}` runs without one",
                hint=instead,
            )
    variables = tuple(f"{variable}={value}" for variable, value in environment.items())
    began = ("env", *variables, *argv) if variables else argv
    if how.workdir is None:
        return began
    return ("sh", "-c", _IN_FOLDER, "sh", how.workdir, *began)


class HostProcesses:
    """What runtimes have in common whose sessions are processes of the host; see `Runtime`."""

    engine: None = None
    # Where Jupyter can have no socket. Other users share the loopback; the token keeps them out.
    bind_address: str = "127.0.0.1"
    has_containers: bool = False
    in_jobs: bool = False
    gpus_by_cdi: bool = False

    @property
    def required_engine(self) -> NoReturn:
        raise Usage("the runtime has no containers", hint="`--runtime docker`, or `podman`")

    def shown(self, *_words: str) -> str:
        return ""

    def place(self, name: str, host: str) -> str:
        return f"`{host}`"

    def check_name(self, name: str) -> None:
        check_session_name(name)

    def inside(self, name: str, script: str) -> str:
        """Run `script` on the host, which has the session's processes and folder, and wait."""
        return command_line(("sh", "-c", script))

    def on_machine(self, name: str, script: str) -> str:
        """Return `script`: the host has both."""
        return script

    def owns(self, container: Container) -> str:
        """Check for the user: a session on the host has no bounds."""
        return '[ -O "$process" ]'

    def detached(self, name: str, script: str) -> str:
        """Run `script` in a process session of its own."""
        return detached(("sh", "-c", script))

    def launched(self, name: str, script: str, waiting: str) -> str:
        """Start one after the other, without the shell's `&`."""
        return f"{self.detached(name, script)}\n{self.inside(name, waiting)}"

    def relay_prefix(self, name: str) -> tuple[str, ...]:
        """Return nothing: a plain forward reaches the host's loopback."""
        return ()

    def sweep(self, name: str, mark: str, user: str | None = None) -> tuple[str, ...]:
        """Return nothing: they are the host's."""
        return ()


@dataclass(frozen=True)
class Bare(HostProcesses):
    """The host itself; see `Runtime`."""

    name: str = "none"
    program: str = ""
    has_images: bool = False
    # `/tmp` belongs to all users there, so it is the XDG state folder. Machines may share that one,
    # and a process id of one means nothing on another, so each has a folder of its own in it.
    servers_folder: str = "${XDG_STATE_HOME:-$HOME/.local/state}/jlr/servers/$(uname -n)"

    def describe(self, name: str) -> Steps:
        """Identify the machine and its boot."""
        return {"container": "uname -n; cat /proc/sys/kernel/random/boot_id"}

    def survey(self, name: str, inside: str) -> Steps:
        """Describe it, and look for a server from outside."""
        return {**self.describe(name), "inside": self.inside(name, inside)}

    def read(self, name: str, results: Mapping[str, Completed]) -> Container | None:
        """Return the host as a container that runs since the boot."""
        machine, _, boot = results["container"].stdout.strip().partition("\n")
        return Container(
            id=machine, name=name, running=True, started_at=boot, addresses=("127.0.0.1",)
        )

    def in_image(self, name: str, script: str) -> str:
        """Run `script` on the host and wait: it has no image."""
        return self.inside(name, script)

    def attached(
        self, name: str, argv: tuple[str, ...], how: Attachment, environment: Mapping[str, str]
    ) -> tuple[str, ...]:
        text = _WITH_PATH.replace("FOLDER", self.servers_folder).replace("PATH_FILE", PATH_FILE)
        text = text.replace("KEEP_PATH", KEEP_PATH if how.terminal else "")
        return ("sh", "-c", text, "sh", name, *attached(name, argv, how, environment))
