"""Scripts of shells and commands with the caller's stdin and stdout, kept shells, and SFTP.

tmux on the host keeps shells that outlast a lost connection, also those in containers. There the
engine's client runs in tmux, so a container needs no tmux. All of jlr's are in a server of their
own, `tmux -L jlr`, where their names cannot meet the user's. A terminal that was not asked to be
kept has a server for itself: with its login's own variables, and without the user's settings.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from typing import Any

from jlremote.errors import NotFound
from jlremote.place.host import process_mark
from jlremote.place.host.shell_text import IF_MISSING, KEEP_ODD_VARIABLES, command_line
from jlremote.place.host.sudo import endable
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
  case ${{{variables.PATH_KEPT}:+${{SHELL##*/}}}} in bash|dash|ksh|sh|zsh)
    set -- "$@" -c 'PATH=$0:$PATH; export PATH; exec "$SHELL"' "${variables.PATH_KEPT}";;
  esac
}}
unset {variables.PATH_KEPT}
{IF_MISSING}{KEEP_ODD_VARIABLES}\
exec "$@"
"""


def script(
    runtime: Runtime,
    name: str,
    attached: Attachment,
    argv: tuple[str, ...],
    mark: str,
    *,
    given: str = "",
    marked: bool = False,
    sized: bool = True,
) -> str:
    """Return the script that runs a command, or a shell for none, with our stdin and stdout.

    In a container, or where it is `marked`, its random `mark` finds it for a signal. It is `given`
    the variables of `variables.parted` at the beginning of its stdin, in a terminal behind the
    mark. `sized` gives its terminal the caller's size.
    """
    marks = {process_mark.VARIABLE: mark} if runtime.has_containers or marked else {}
    take = variables.take_typed if attached.terminal else lambda text, _: variables.take_first(text)
    inside = take(given, mark) if given else ""
    if attached.terminal:
        inside += KNOWN_TERMINAL + (_SIZE.format(attached.terminal) if sized else "")
    if runtime.has_containers:
        inside += variables.writable_home(name) + packages.USE
    inside += process_mark.MARK_ITSELF if marks else ""
    if runtime.enters_image:
        inside += packages.USE
    inside += _SHELL.replace("LOGIN", "" if runtime.has_images else "-l")
    begin = runtime.attached(name, ("sh", "-c", inside, "sh", *argv), attached, marks)
    if not runtime.has_containers:
        return f"exec {command_line(begin)}\n"
    ending = Attachment(user=attached.user)
    end = runtime.attached(name, process_mark.signal_argv(mark, "HUP"), ending, {})
    hang_up = f'trap "" HUP TERM; {command_line(end)} </dev/null >/dev/null 2>&1; exit 129'
    here = command_line(begin) if attached.terminal else endable(begin)
    return f"trap {shlex.quote(hang_up)} HUP TERM\n{here}\n"


_LOST = "lost-"  # begins the labels of terminals that were not asked to be kept
# Prints the names of the shells that a terminal shows.
SHOWN = "tmux -L jlr list-sessions -F '#{?session_attached,#{session_name},}' 2>/dev/null\n"
_FOLDER = '"${XDG_STATE_HOME:-$HOME/.local/state}/jlr/shells/$(uname -n)"'
# Makes tmux as good as absent. What scrolls off is to reach the terminal's own scrollback: no
# alternate screen, new lines instead of `indn`, and nothing cleared at the end. The bytes of one
# key may arrive apart, for which they have 10 ms.
_OVERRIDES = r"*:smcup@:rmcup@:indn@:clear=\E[999;1H:Tc:Ms=\E]52;%p1%s;%p2%s\007"
_UNNOTICED = (
    "status off; prefix None; prefix2 None; mouse off; escape-time 10; focus-events on; "
    "set-clipboard on; allow-passthrough on; default-terminal screen-256color; set-titles on; "
    f"set-titles-string #T; terminal-overrides {_OVERRIDES}"
)
_OPTIONS = tuple(w for one in _UNNOTICED.split("; ") for w in ("set", "-gq", *one.split(), ";"))
# Removes what is a day old, then names the shells of a place that no terminal shows. The status
# stays a day: the script of a connection that is lost may come to it first.
_LEFT = f"""\
sockets="${{TMUX_TMPDIR:-/tmp}}/tmux-$(id -u)"
find "$folder" "$sockets" -name '*{_LOST}*' -mtime +0 -exec sh -c '
  one=${{1##*{_LOST}}}
  tmux -L "jlr-{_LOST}${{one%.taken}}" has-session 2>/dev/null || rm -f "$1"
' sh {{}} \\; 2>/dev/null
left=$(for socket in "$sockets/jlr-{_LOST}"*; do
  tmux -S "$socket" list-sessions -F '#{{?session_attached,,#{{session_name}}}}' 2>/dev/null
done | sed -n NAMED)
"""
# tmux's server may not have the variables that lead sudo to its password, and outlasts the script
# that has its file.
_SUDO = '${SUDO_PROMPT:+env "SUDO_ASKPASS=$SUDO_ASKPASS" "SUDO_PROMPT=$SUDO_PROMPT"}'
# It begins once a terminal shows it, or what a short command printed would be lost.
_INSIDE = """\
tmux wait-for "$0"
unset TMUX TMUX_PANE TERM_PROGRAM TERM_PROGRAM_VERSION
case ${SUDO_PROMPT-} in /proc/*) exec 9<"$SUDO_PROMPT"; SUDO_PROMPT=/proc/$$/fd/9;; esac
rm -f "$1"
[ -z "$2" ] || printf 'left by lost connections:\\n%s\\n' "$2"
(
PLAIN)
echo $? >"$1"
"""


def kept_script(plain: str, kept: Mapping[str, Any]) -> str:
    """Return the script that runs a `plain` one in tmux, or attaches to the shell that runs.

    It prints the mark of a `KeptShell`, or runs as it says where tmux cannot keep it. Its exit
    status is the shell's, 0 if that goes on. A server that is just ending refuses the first try.
    """
    name, left, above, begins = kept["name"], "", "", "command -v tmux >/dev/null"
    options: tuple[str, ...] = ()
    if kept["unasked"]:
        named = f"s|^{name.rpartition('/')[0]}/|  jlr shell {kept['again'].rpartition(' ')[0]} |p"
        left, options = _LEFT.replace("NAMED", shlex.quote(named)), ("-f", "/dev/null", *_OPTIONS)
        above, begins = 'yes "" | head -n "${size% *}"\n', f'[ "$TERM" != dumb ] && {begins}'
    new = _tmux(name, *options, "new-session", "-d", "-s", name)
    inside = shlex.quote(_INSIDE.replace("PLAIN", plain))
    return f"""\
{KNOWN_TERMINAL}{_files(name)}if {begins} &&
  (umask 077; mkdir -p "$folder" && echo {kept["mark"]} >"$taken") 2>/dev/null; then
  {left}size=$(stty size)
  begin() {{
    TMUX= {new} -x "${{size#* }}" -y "${{size% *}}" \
      {_SUDO} sh -c {inside} {shlex.quote(name)} "$status" "$left" 2>/dev/null
  }}
  if {_look(name)} && echo 'attached again to the shell that was kept' || begin || begin; then
    printf %s {kept["mark"]}
    {above}{again_script(kept)}
  fi
fi
{kept["without"]}{plain}"""


def again_script(kept: Mapping[str, Any]) -> str:
    """Return the script that attaches to the shell that our mark has taken last.

    Where that cannot be, it says why, and exits with the shell's status if it has ended.
    """
    name, again = kept["name"], kept["again"]
    attach = _tmux(name, "attach-session", "-d", "-t", f"={name}", ";", "wait-for", "-S", name)
    goes_on = shlex.quote(f"the shell keeps running; `jlr shell {again}` attaches again")
    return f"""\
{KNOWN_TERMINAL}{_files(name)}ours() {{ [ "$(cat "$taken")" = {kept["mark"]} ]; }}
if ours && {_look(name)}; then
  {attach} >/dev/null
elif ours && [ -f "$status" ]; then
  printf 'the shell has ended meanwhile: exit code %s\n' "$(cat "$status")"
elif ours; then
  echo 'the shell is gone, and has left no exit code'
  exit {NotFound.exit_code}
fi
ours || {{ echo 'another terminal has the shell'; exit 0; }}
! {_look(name)} || {{ echo {goes_on}; exit 0; }}
{{ read -r code <"$status"; }} 2>/dev/null
exit "${{code:-1}}"
"""


def end_script(kept: Mapping[str, Any]) -> str:
    """Return the script that ends a shell and its jobs, if no other terminal has taken it."""
    # It does not lead the terminal's session, so the kernel may not tell it.
    name = kept["name"]
    leader = _tmux(name, "list-panes", "-s", "-t", f"={name}", "-F", "#{pane_pid}")
    kill = _tmux(name, "kill-session", "-t", f"={name}")
    return f"""\
{_files(name)}[ "$(cat "$taken")" != {kept["mark"]} ] || {{
  pkill -HUP -P "$({leader})"
  {kill}
}}
"""


def _look(name: str) -> str:
    """Return the command that succeeds if the shell of that name runs."""
    return f"{_tmux(name, 'has-session', '-t', f'={name}')} 2>/dev/null"


def _tmux(name: str, *words: str) -> str:
    label = name.rpartition("/")[2]
    server = f"jlr-{label}" if label.startswith(_LOST) else "jlr"
    return command_line(("tmux", "-u", "-L", server, *words))


def _files(name: str) -> str:
    file = shlex.quote(name.replace("/", "%"))
    return f'folder={_FOLDER}; status="$folder"/{file}; taken="$status.taken"\n'


_OPENSSH = """\
for folder in /usr/lib/openssh /usr/libexec/openssh /usr/libexec /usr/lib/ssh /usr/lib; do
  [ ! -x "$folder/sftp-server" ] || exec "$folder/sftp-server"
done
"""


def sftp_argv() -> tuple[str, ...]:
    """Return the argv that serves files on stdin and stdout."""
    return ("sh", "-c", _OPENSSH + RUN_PYTHON, "sh", "-c", program("jlremote.remote.sftp"))
