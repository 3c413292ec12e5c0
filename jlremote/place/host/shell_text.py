"""Text for `sh`: command lines, waiting, and commands that end after a time or with a reader."""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Iterable

from jlremote.text import size_in_words

_STDIN = re.compile(r"(<<'(end-[0-9a-f]{16})'\n).*?^\2\n", re.DOTALL | re.MULTILINE)
_ARGUMENT = re.compile(r"""'[^']*'(?:"'"'[^']*')*""")
_LONG_PROGRAM = 5  # lines
# Puts `env` and the variables whose names are not for shells (`app.mode`, functions of bash) before
# the command that the arguments are: dash and busybox keep those from what they run. They are this
# shell's own, and those of the process `$jlr_main` where there is one.
KEEP_ODD_VARIABLES = r"""
jlr_odd=$(LC_ALL=C sed -zn "/^[A-Za-z_][A-Za-z0-9_]*=/d
  /^[^-=][^=]*=/!d; s/'/'\\\\''/g; s/.*/'&'/p" \
  "/proc/$$/environ" ${jlr_main:+"/proc/$jlr_main/environ"} 2>/dev/null | tr '\0' ' ' 2>/dev/null)
[ -z "$jlr_odd" ] || eval "set -- env $jlr_odd \"\$@\""
"""
# Says as a shell does that there is no such command; dash names itself, `exec` and a line.
IF_MISSING = """\
case $1 in */*) ;; *) command -v "$1" >/dev/null || {
  printf '%s: command not found\\n' "$1" >&2; exit 127
};; esac
"""
# Begins a command that a signal to its script leaves alone, if the host has `setsid`.
APART = "$(command -v setsid) "
TOOK_TOO_LONG = 124  # the exit status of `timeout`, which some hosts lack
# Changes to the folder `$1`; `~` is the home, though it was quoted.
IN_FOLDER = 'case $1 in "~"|"~/"*) cd && cd "./${1#"~"}";; *) cd -- "$1";; esac'


def command_line(argv: Iterable[str]) -> str:
    """Return argv as one line for a POSIX shell, also fit to be pasted by a person."""
    return shlex.join(argv)


def typed_path(path: str) -> str:
    """Return a path as a person types it in a shell, where `~/` must stay unquoted."""
    home, slash, below = path.partition("/")
    return f"~/{shlex.quote(below)}" if home == "~" and slash else shlex.quote(path)


def bounded(argv: Iterable[str], seconds: int) -> str:
    """Return shell text that runs a command, for `seconds` at most (see `TOOK_TOO_LONG`)."""
    return f"$(command -v timeout >/dev/null && echo timeout {seconds}) {command_line(argv)}"


def stdin_of(text: str) -> str:
    """Return a here-document with lines of text as a command's stdin."""
    end = f"end-{os.urandom(8).hex()}"  # in no value
    return f"<<'{end}'\n{text}{end}\n"


def in_short(script: str) -> str:
    """Return a script fit to be read: here-documents and long programs in it are only named."""
    return _ARGUMENT.sub(_size_of_program, _STDIN.sub(r"\1…\n\2\n", script))


def _size_of_program(argument: re.Match[str]) -> str:
    lines = argument[0].count("\n")
    if lines < _LONG_PROGRAM:
        return argument[0]
    name = "launches JupyterLab" if "jupyter-lab" in argument[0] else "program"
    return f"'<{name}: {lines} lines, {size_in_words(len(argument[0]))}>'"


def pause(seconds: float) -> str:
    """Return shell text that sleeps; some hosts' `sleep` takes whole seconds only."""
    return f"sleep {seconds:g} 2>/dev/null || sleep 1"


def own_folder(begin: str, mode: str, otherwise: str) -> str:
    """Return shell text that goes to a folder of the user's own, below one where others may write.

    Its name is `begin` and the user's id, and more where another user has taken that. `otherwise`
    runs if there can be none.
    """
    return f"""\
jlr_own={begin}$(id -u); jlr_above=$(pwd -P)
for jlr_mine in "$jlr_own" "$jlr_own"-*; do
  [ ! -O "$jlr_mine" ] || [ ! -d "$jlr_mine" ] || [ -L "$jlr_mine" ] || break; jlr_mine=
done
[ "$jlr_mine" ] || {{ mkdir -m {mode} "$jlr_own" && jlr_mine=$jlr_own; }} 2>/dev/null ||
  jlr_mine=$(mktemp -d "$jlr_own-XXXXXXXX") || {otherwise}
cd -P "$jlr_mine" && [ "$(pwd -P)" = "${{jlr_above%/}}/$jlr_mine" ] && [ -O . ] &&
  chmod {mode} . || {otherwise}
"""


def wait_while(
    condition: str,
    seconds: float | str,
    *,
    every: float = 0.1,
    meanwhile: str = "",
    too_long: str = "break",
) -> str:
    """Return shell text that tries `condition` `every` so many seconds while it holds.

    After `seconds` (a number, or a shell variable with one) `too_long` runs, e.g. `break` or
    `exit`. Each turn runs `meanwhile`.
    """
    rate = round(1 / every)
    turns = f"$(({seconds} * {rate}))" if isinstance(seconds, str) else round(seconds * rate)
    body = f"  {meanwhile}\n" if meanwhile else ""
    return f"""\
jlr_turns=0
while {condition}; do
  [ "$jlr_turns" -lt {turns} ] || {too_long}
{body}  jlr_turns=$((jlr_turns + 1)); {pause(every)}
done
"""


def until_hang_up(command: str) -> str:
    """Return shell text that runs `command` until it or its stdin ends."""
    return f"""\
exec 3<&0
{command} 3<&- &
command=$!
{{ read -r nothing; kill $command; }} <&3 3<&- >/dev/null 2>&1 &
watcher=$!
exec 3<&-
wait $command; status=$?
kill $watcher 2>/dev/null
exit $status
"""


def again_until_hang_up(body: str, seconds: float) -> str:
    """Return shell text that runs `body` every so often until its stdin ends."""
    # A `sleep` that outlasts it would count as a program of the container.
    return until_hang_up(f"""\
{{
trap 'kill $! 2>/dev/null; exit 143' TERM
while :; do
{body}
sleep {seconds:g} 2>/dev/null & wait $! || {{ sleep 1 & wait $!; }}
done; }}""")
