"""Scripts of shells and commands with the caller's stdin and stdout, kept shells, and SFTP.

tmux on the host keeps shells that outlast a lost connection, also those in containers. There the
engine's client runs in tmux, so a container needs no tmux. All of jlr's are in a server of their
own, `tmux -L jlr`, where their names cannot meet the user's.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from types import MappingProxyType

from jlremote.errors import NotFound
from jlremote.place.host import process_mark
from jlremote.place.host.shell_text import IF_MISSING, KEEP_ODD_VARIABLES, command_line
from jlremote.place.host.sudo import SUDO, endable
from jlremote.place.runtimes.bare import PATH_KEPT
from jlremote.place.runtimes.runtime import Attachment, Runtime
from jlremote.place.runtimes.scripts import packages, variables
from jlremote.remote.sending import RUN_PYTHON, program

# The image may not describe the caller's terminal; fewer keys and colours are better than an
# `unknown terminal type`.
KNOWN_TERMINAL = """\
known=
for folder in ~/.terminfo /etc/terminfo /lib/terminfo /usr/lib/terminfo /usr/share/terminfo; do
  [ ! -e "$folder/${TERM%"${TERM#?}"}/$TERM" ] || known=yes
done
[ "$known" ] || export TERM=xterm-256color
"""
# The engine sets the size only after the start of the command, which may read it before.
_SIZE = "stty rows {0.lines} columns {0.columns} 2>/dev/null\n"
_SHELL = f"""\
[ $# -gt 0 ] || {{
  [ -x "${{SHELL:-}}" ] || SHELL=$(command -v bash || command -v sh)
  set -- "$SHELL" LOGIN
  case ${{{PATH_KEPT}:+${{SHELL##*/}}}} in bash|dash|ksh|sh|zsh)
    set -- "$@" -c 'PATH=$0:$PATH; export PATH; exec "$SHELL"' "${PATH_KEPT}";;
  esac
}}
unset {PATH_KEPT}
{IF_MISSING}{KEEP_ODD_VARIABLES}\
exec "$@"
"""

NOTHING: Mapping[str, str] = MappingProxyType({})


def script(
    runtime: Runtime,
    name: str,
    attached: Attachment,
    argv: tuple[str, ...],
    mark: str,
    *,
    given: str = "",
    marked: bool = False,
) -> str:
    """Return the script that runs a command, or a shell for none, with our stdin and stdout.

    In a container, or where it is `marked`, its random `mark` finds it for a signal. It is `given`
    the variables of `variables.parted` at the beginning of its stdin, in a terminal behind the
    mark.
    """
    marks = {process_mark.VARIABLE: mark} if runtime.has_containers or marked else {}
    take = variables.take_typed if attached.terminal else lambda text, _: variables.take_first(text)
    before = take(given, mark) if given else ""
    begin = argv_of(runtime, name, attached, argv, marks, before=before)
    if not runtime.has_containers:
        return f"exec {command_line(begin)}\n"
    ending = Attachment(user=attached.user)
    end = runtime.attached(name, process_mark.signal_argv(mark, "HUP"), ending, {})
    hang_up = f'trap "" HUP TERM; {command_line(end)} </dev/null >/dev/null 2>&1; exit 129'
    here = command_line(begin) if attached.terminal else endable(begin)
    return f"trap {shlex.quote(hang_up)} HUP TERM\n{here}\n"


def argv_of(
    runtime: Runtime,
    name: str,
    attached: Attachment,
    argv: tuple[str, ...],
    environment: Mapping[str, str] = NOTHING,
    *,
    sized: bool = True,
    before: str = "",
) -> tuple[str, ...]:
    """Return the command that runs a command, or a shell for an empty argv, where `name` runs.

    `sized` gives its terminal the caller's size; the text `before` runs first.
    """
    size = attached.terminal
    inside = before + (KNOWN_TERMINAL if size else "")
    inside += _SIZE.format(size) if size and sized else ""
    if runtime.has_containers:
        inside += variables.writable_home(name) + packages.USE
    inside += process_mark.MARK_ITSELF if process_mark.VARIABLE in environment else ""
    if runtime.enters_image:
        inside += packages.USE
    inside += _SHELL.replace("LOGIN", "" if runtime.has_images else "-l")
    return runtime.attached(name, ("sh", "-c", inside, "sh", *argv), attached, environment)


NO_TMUX = 127  # sh: command not found
_TMUX = ("tmux", "-u", "-L", "jlr")
# Prints the names of the shells that a terminal shows.
_SHOWN_NAME = "#{?session_attached,#{session_name},}"
SHOWN = f"{command_line((*_TMUX, 'list-sessions', '-F', _SHOWN_NAME))} 2>/dev/null\n"
_FOLDER = '"${XDG_STATE_HOME:-$HOME/.local/state}/jlr/shells/$(uname -n)"'


def session(runtime: Runtime, name: str | None, label: str) -> str:
    """Return tmux's name of a shell, `None` for the host's; tmux takes neither `.` nor `:`."""
    place = f"{runtime.name}/{name}" if name is not None else "host"
    text = f"{place}/{label}" if label else place
    return text.replace(" ", "-").replace(".", "+")


def look(name: str) -> str:
    """Return the script that succeeds if the shell of that name runs; it fails with `NO_TMUX`."""
    there = command_line((*_TMUX, "has-session", "-t", f"={name}"))
    return f"command -v tmux >/dev/null || exit {NO_TMUX}\n{there} 2>/dev/null\n"


def kept_script(begin: tuple[str, ...], name: str, mark: str) -> str:
    """Return the script that runs a shell or command in tmux, or attaches to the one that runs.

    Other terminals that show it are detached. Its exit status is the shell's, 0 if that goes on.
    The random `mark` tells whether another terminal has taken it since.
    """
    inside = f'rm -f "$1"\n{command_line(begin)}\necho $? >"$1"\n'
    # tmux's server does not have the variables that lead sudo to its password.
    passed = (
        'env SUDO_ASKPASS="${SUDO_ASKPASS-}" SUDO_PROMPT="${SUDO_PROMPT-}" '
        if begin[:1] == SUDO[:1]
        else ""
    )
    new = command_line((*_TMUX, "new-session", "-A", "-D", "-s", name))
    return f"""\
{_files(name)}(umask 077; mkdir -p "$folder" && echo {mark} >"$taken") || exit
{KNOWN_TERMINAL}{new} {passed}sh -c {shlex.quote(inside)} sh "$status" || exit
{_its_status(name)}"""


def again_script(name: str, mark: str) -> str:
    """Return the script that attaches, after a loss, to the shell that our mark has taken last.

    Where that cannot be, it says why, and exits with the shell's status if it has ended.
    """
    attach = command_line((*_TMUX, "attach-session", "-d", "-t", f"={name}"))
    return f"""\
{_files(name)}{KNOWN_TERMINAL}if [ "$(cat "$taken")" != {mark} ]; then
  echo 'another terminal has the shell'
  exit 0
elif {look(name)}then
  {attach}
elif [ -f "$status" ]; then
  printf 'the shell has ended meanwhile: exit code %s\n' "$(cat "$status")"
else
  echo 'the shell is gone, and has left no exit code'
  exit {NotFound.exit_code}
fi
{_its_status(name)}"""


def _files(name: str) -> str:
    file = shlex.quote(name.replace("/", "%"))
    return f'folder={_FOLDER}; status="$folder"/{file}; taken="$status.taken"\n'


# The status stays in its file: the script of a connection that is lost may come to this first.
def _its_status(name: str) -> str:
    return f"""\
{look(name)}[ $? != 0 ] || exit 0
read -r code <"$status"
exit "${{code:-1}}"
"""


_OPENSSH = """\
for folder in /usr/lib/openssh /usr/libexec/openssh /usr/libexec /usr/lib/ssh /usr/lib; do
  [ ! -x "$folder/sftp-server" ] || exec "$folder/sftp-server"
done
"""


def sftp_argv() -> tuple[str, ...]:
    """Return the argv that serves files on stdin and stdout."""
    return ("sh", "-c", _OPENSSH + RUN_PYTHON, "sh", "-c", program("jlremote.remote.sftp"))
