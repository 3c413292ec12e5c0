"""Shells that outlast a lost connection: tmux on the host keeps them, also those in containers.

There the engine's client runs in tmux, so a container needs no tmux. All of jlr's are in a server
of their own, `tmux -L jlr`, where their names cannot meet the user's.
"""

from __future__ import annotations

import shlex

from jlremote.host.shell_text import command_line
from jlremote.host.sudo import SUDO
from jlremote.runtimes.contract import Attachment, Runtime
from jlremote.runtimes.scripts import shells

NO_TMUX = 127  # sh: command not found
_TMUX = ("tmux", "-u", "-L", "jlr")
_FOLDER = '"${XDG_STATE_HOME:-$HOME/.local/state}/jlr/shells/$(uname -n)"'


def session(runtime: Runtime, name: str | None, label: str) -> str:
    """Return tmux's name of a shell: of a container or session, `None` for the host itself.

    `label` tells several of one place apart. tmux takes neither `.` nor `:`.
    """
    place = f"{runtime.name}/{name}" if name is not None else "host"
    text = f"{place}/{label}" if label else place
    return text.replace(" ", "-").replace(".", "+")


def look(name: str) -> str:
    """Return the script that succeeds if the shell of that name runs; it fails with `NO_TMUX`."""
    there = command_line((*_TMUX, "has-session", "-t", f"={name}"))
    return f"command -v tmux >/dev/null || exit {NO_TMUX}\n{there} 2>/dev/null\n"


def script(
    runtime: Runtime, place: str, attached: Attachment, argv: tuple[str, ...], name: str
) -> str:
    """Return the script that runs a shell or command in tmux, or attaches to the one that runs.

    Other terminals that show it are detached. Its exit status is the shell's, 0 if that goes on.
    """
    begin = shells.argv_of(runtime, place, attached, argv, sized=False)
    inside = f'rm -f "$1"\n{command_line(begin)}\necho $? >"$1"\n'
    # tmux's server does not have the variables that lead sudo to its password.
    passed = (
        'env SUDO_ASKPASS="${SUDO_ASKPASS-}" SUDO_PROMPT="${SUDO_PROMPT-}" '
        if begin[:1] == SUDO[:1]
        else ""
    )
    new = command_line((*_TMUX, "new-session", "-A", "-D", "-s", name))
    return f"""\
folder={_FOLDER}; status="$folder"/{shlex.quote(name.replace("/", "%"))}
(umask 077; mkdir -p "$folder") || exit
{shells.KNOWN_TERMINAL}{new} {passed}sh -c {shlex.quote(inside)} sh "$status" || exit
{look(name)}[ $? != 0 ] || exit 0
read -r code <"$status" && rm -f "$status"
exit "${{code:-1}}"
"""
