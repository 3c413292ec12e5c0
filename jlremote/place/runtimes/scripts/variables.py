"""Variables, HOME and PATH of what runs in a container.

Variables come by stdin, as all users of a host can read the arguments of processes. Any user can
write a container's `/tmp`, and with `-v /tmp:/tmp` the host's users, too. A uid without a passwd
entry gets `HOME=/`, which it cannot write, and many programs fail without a HOME.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Mapping

from jlremote.errors import Usage
from jlremote.place.host.sudo import SUDO
from jlremote.place.runtimes.engine.kinds import Argv

# Begins a script of the program that is to have them; its stdin is empty afterwards.
TAKE = 'jlr_given=$(cat); eval "$jlr_given"; unset jlr_given; exec </dev/null\n'

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
# Bash ends at an assignment to these, and no secret is called so.
_READ_ONLY = frozenset(("BASHOPTS", "BASH_VERSINFO", "EUID", "PPID", "SHELLOPTS", "UID"))
# A line of an engine's `--env-file`, which takes the rest of the line as it is.
_LINE = re.compile(r"[\w.-]+=[^\r\n]*")


def check_name(name: str) -> None:
    """Refuse a variable's name that shells do not take (`Usage`)."""
    if not _NAME.fullmatch(name):
        hint = "use letters, digits and `_`, not beginning with a digit"
        raise Usage(f"invalid name in `--env {name}=…`", hint=hint)


def take_first(text: str) -> str:
    """Return the beginning of a script that reads its variables, and no more, from its stdin."""
    count = len(text.encode("utf-8", "surrogateescape"))
    return f'jlr_given=$(dd bs=1 count={count} 2>/dev/null); eval "$jlr_given"; unset jlr_given\n'


def take_typed(text: str, marker: str) -> str:
    """Return the same for a script in a terminal, which gets them when it prints `marker`."""
    # It needs `stty`: neither the echo nor the editing of lines must touch them.
    return (
        f"jlr_kept=$(stty -g) && stty raw -echo && printf %s {marker} || exit\n"
        f'{take_first(text)}stty "$jlr_kept"; unset jlr_kept\n'
    )


def parted(variables: Mapping[str, str]) -> tuple[dict[str, str], str]:
    """Return variables that only an argument can set, and text for `TAKE` (`Usage`: a bad name)."""
    for name in variables:
        check_name(name)
    plain = {name: value for name, value in variables.items() if name in _READ_ONLY}
    given = (item for item in variables.items() if item[0] not in _READ_ONLY)
    return plain, "".join(f"export {name}={shlex.quote(value)}\n" for name, value in given)


def off_arguments(create: Argv, environment: Iterable[str]) -> tuple[Argv, Argv, str]:
    """Return the words of a command that creates a container, without the values of variables.

    With them come the variables that it must be run with, `NAME=VALUE`, as they have several lines,
    and its stdin, a line for each other one (`Usage`: `sudo` would drop one, or no shell takes its
    name).
    """
    words, own, lines = list(create), [], []
    for item in environment:
        name, _, value = item.partition("=")
        if f"--env={item}" not in words or not value:
            continue
        place = words.index(f"--env={item}")
        if _LINE.fullmatch(item):
            lines.append(f"{item}\n")
            del words[place]
        else:
            check_name(name)
            own.append(item)
            words[place] = f"--env={name}"
    if own and words[0] == SUDO[0]:
        why = f"`--env {own[0].partition('=')[0]}` has several lines, which `sudo` does not pass on"
        raise Usage(why, hint="put the value into a file of the host and mount that: `--volume`")
    if lines:
        words.insert(words.index("create") + 1, "--env-file=/dev/stdin")
    return tuple(words), tuple(own), "".join(lines)


ROOT = "/tmp/jlr-$(id -u)"  # noqa: S108
NOT_PRIVATE = "is not a folder of this user alone"
NO_FOLDER = 73  # sysexits.h: EX_CANTCREAT

# Makes the folder, and fails if another user could have planted or written what is in it. `-O`
# follows a link, which `ls` shows as one. Where it cannot be made at all, nothing is there to use.
PRIVATE = f"""\
jlr_private() {{
  (umask 077; mkdir "$1") 2>/dev/null
  [ -e "$1" ] || [ -L "$1" ] || return 0
  [ -O "$1" ] && case $(ls -ld "$1") in drwx--[-S]---*) return 0;; esac
  printf '%s {NOT_PRIVATE}, with mode 0700 and no link\\n' "$1" >&2
  return 1
}}
jlr_private "{ROOT}\""""

# Without variables of its own: the environment is that of the person's command.
_HOME = f"""\
[ -w "${{HOME:-/nonexistent}}" ] || ! {{
{PRIVATE}; }} || ! (umask 077; mkdir -p "{ROOT}"/NAME/home) 2>/dev/null ||
  export HOME="{ROOT}"/NAME/home
"""


def writable_home(name: str) -> str:
    """Return shell text that sets HOME to a folder of the session or job if it is not writable."""
    return _HOME.replace("NAME", shlex.quote(name))


# The PATH of a session, for a shell in a terminal: as a login shell it may set one of its own.
PATH_KEPT = "JLR_PATH"
# Patterns for the folders of a conda: the person's own first, then one of the image or host.
CONDA_PLACES = "~/*conda* ~/mini* ~/mamba* /opt/*conda* /opt/mini*"

# One on the PATH, as an activated environment, takes precedence; so does Jupyter of any other kind.
CONDA_ON_PATH = f"""\
if ! command -v jupyter-lab >/dev/null && ! command -v jupyter-notebook >/dev/null; then
  for folder in {CONDA_PLACES}; do
    [ ! -x "$folder/bin/jupyter-lab" ] && [ ! -x "$folder/bin/jupyter-notebook" ] ||
      {{ PATH=$folder/bin:$PATH; break; }}
  done
fi
"""
