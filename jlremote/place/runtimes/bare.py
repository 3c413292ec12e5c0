"""The runtime `none`: Jupyter runs on the host itself, as the login user."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from jlremote.errors import Usage
from jlremote.place.host.contract import Completed, Steps
from jlremote.place.host.shell_text import IF_MISSING, IN_FOLDER, command_line
from jlremote.place.runtimes.runtime import Attachment, Container, Runtime

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
_IN_FOLDER = f"""\
{IN_FOLDER} || exit
shift
{IF_MISSING}exec "$@"
"""
# For a shell in a terminal: as a login shell it may set a PATH of its own.
PATH_KEPT = "JLR_PATH"
KEEP_PATH = f"{PATH_KEPT}=$PATH; export {PATH_KEPT}; "
# `$1` names a session; runs the other arguments with the PATH of the Python that was named for it.
_WITH_PATH = f"""\
jlr_path="FOLDER"/$1/PATH_FILE; shift
[ ! -e "$jlr_path" ] || {{ . "$jlr_path"; KEEP_PATH}}
{IF_MISSING}exec "$@"
"""
PATH_FILE = "path"


def detached(argv: tuple[str, ...]) -> str:
    """Return the command that runs argv in a process session of its own, so it outlives ours."""
    # The shell's `&` would make it ignore SIGINT for good.
    return command_line(("sh", "-c", _DETACH, "sh", *argv))


def attached(
    name: str, argv: tuple[str, ...], how: Attachment, environment: Mapping[str, str]
) -> tuple[str, ...]:
    """Return the command that runs argv in a folder (`Usage`: an option is only for containers)."""
    for option, value, instead in (
        ("--user", how.user, "write the user before the host, as in `me@dgx`"),
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


@dataclass(frozen=True)
class Bare(Runtime):
    """The host itself; see `Runtime`."""

    name: str = "none"
    # `/tmp` belongs to all users there, so it is the XDG state folder. Machines may share that one,
    # and a process id of one means nothing on another, so each has a folder of its own in it.
    servers_folder: str = "${XDG_STATE_HOME:-$HOME/.local/state}/jlr/servers/$(uname -n)"

    def describe(self, name: str) -> Steps:
        return {"container": "uname -n; cat /proc/sys/kernel/random/boot_id"}

    def read(self, name: str, results: Mapping[str, Completed]) -> Container | None:
        """Return the host as a container that runs since the boot."""
        machine, _, boot = results["container"].stdout.strip().partition("\n")
        return Container(
            id=machine, name=name, running=True, started_at=boot, addresses=("127.0.0.1",)
        )

    def detached(self, name: str, script: str) -> str:
        return detached(("sh", "-c", script))

    def attached(
        self, name: str, argv: tuple[str, ...], how: Attachment, environment: Mapping[str, str]
    ) -> tuple[str, ...]:
        text = _WITH_PATH.replace("FOLDER", self.servers_folder).replace("PATH_FILE", PATH_FILE)
        text = text.replace("KEEP_PATH", KEEP_PATH if how.terminal else "")
        return ("sh", "-c", text, "sh", name, *attached(name, argv, how, environment))
