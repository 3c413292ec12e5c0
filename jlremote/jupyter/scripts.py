"""What runs beside the server, as text for `sh`.

Each session has a folder of its own there (0700): `runtime/` is Jupyter's `JUPYTER_RUNTIME_DIR`,
where it writes `jpserver-PID.json` (older ones `nbserver-`) with the token that it made (0600);
`jupyter.log` is its log; `launch` names the launch that all this is of, `idle-stop` has its seconds
without work, and `exit` is the exit status once it has ended; `ended` says why, where it was no
accident: `stopped` by a person, or `idle`.
Reading the file takes a twentieth of the time of `jupyter server list`, which also deletes the
records of servers whose pid it cannot see.

Only `sh`, `cat`, `ls`, `grep`, `id`, `mkdir` and `/proc` are needed.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterable

from jlremote.host.records import PRINT_FIELD as FIELD
from jlremote.host.records import PRINT_GROUP as GROUP
from jlremote.host.records import PRINT_RECORD as RECORD
from jlremote.host.shell_text import pause, until_hang_up, wait_while
from jlremote.host.tcp_table import LISTENING
from jlremote.runtimes.bare import Bare
from jlremote.runtimes.contract import Runtime

# What the shell that waits for a server's end has among its arguments, and no probe.
LAUNCH_MARK = 'export JUPYTER_RUNTIME_DIR="$directory/runtime"'
WAIT_SECONDS = 120
LAUNCH_SECONDS = 20
POLLS_A_SECOND = 40
ROOM_BYTES = 1 << 16  # what Jupyter and its launch write before it listens, several times over
NO_FOLDER = 73  # sysexits.h: EX_CANTCREAT
NOT_LAUNCHED = 75  # sysexits.h: EX_TEMPFAIL

# How the runtime files begin: JupyterLab 3 and later, Notebook 7; JupyterLab 2, Notebook 6.
KINDS = ("jpserver", "nbserver")


def session_directory(runtime: Runtime, name: str) -> str:
    """Return the shell assignment of `$directory`, the session's folder."""
    return f'directory="{runtime.servers_folder}"/{shlex.quote(name)}\n'


def own_servers() -> str:
    """Return the script that probes every session of the host itself, a group of records each."""
    files = _runtime_files(('"$directory"/runtime',))
    return (
        f'for directory in "{Bare().servers_folder}"/*; do\n'
        '[ -d "$directory/runtime" ] || continue\n'
        + _PROBE.replace("FILES", files)
        + f"printf '{GROUP}'\ndone\n"
    )


def probe(runtime: Runtime, name: str) -> str:
    """Return the script that tells about the session's folder and every server within reach.

    Without a container only the session's own server counts: on a host that many share, a server
    that was started by hand is somebody's business.
    """
    folders = ('"$directory"/runtime', *(_FOREIGN_FOLDERS if runtime.has_containers else ()))
    return session_directory(runtime, name) + _PROBE.replace("FILES", _runtime_files(folders))


_FOREIGN_FOLDERS = (
    '"${JUPYTER_RUNTIME_DIR:-/nonexistent}"',
    '"${XDG_RUNTIME_DIR:-/nonexistent}"/jupyter',
    '"${XDG_DATA_HOME:-$HOME/.local/share}"/jupyter/runtime',
    "/root/.local/share/jupyter/runtime",
    "/home/*/.local/share/jupyter/runtime",
)


def _runtime_files(folders: Iterable[str]) -> str:
    return " ".join(f"{folder}/{kind}-*.json" for folder in folders for kind in KINDS)


def until_foreign_server(then: str) -> str:
    """Return shell text that runs `then` if a server that jlr did not launch is there."""
    # Not only there: whole.
    return (
        f"for file in {_runtime_files(_FOREIGN_FOLDERS)}; do\n"
        f"""  [ ! -e "$file" ] || case $(cat "$file") in *'}}') {then};; esac\n"""
        "done"
    )


_PROBE = rf"""
tell() {{
  pid=${{1##*-}}; pid=${{pid%.json}}
  [ -r "$1" ] && [ -d "/proc/$pid" ] || return 0
  printf 'server{FIELD}%s{FIELD}%s{FIELD}' "$1" "$pid"; cat "$1"
  printf '{FIELD}'; cat "/proc/$pid/stat"
  printf '{FIELD}'; ls -l "/proc/$pid/fd" 2>/dev/null
  printf '{FIELD}'; ls -l "/proc/$pid/exe" 2>/dev/null
  printf '{FIELD}'; cat "/proc/$pid/cmdline"
  printf '{RECORD}'
}}
printf 'directory{FIELD}%s{RECORD}' "$directory"
jupyter=$(PATH=$PATH:${{directory%/*}}-packages/bin  # see `packages`
command -v jupyter-lab || command -v jupyter-notebook || command -v jupyter)
printf 'jupyter{FIELD}%s{RECORD}' "$jupyter"
printf 'exit{FIELD}%s{RECORD}' "$(cat "$directory/exit" 2>/dev/null)"
printf 'ended{FIELD}%s{RECORD}' "$(cat "$directory/ended" 2>/dev/null)"
printf 'idle-stop{FIELD}%s{RECORD}' "$(cat "$directory/idle-stop" 2>/dev/null)"
for file in FILES; do tell "$file"; done
printf 'listening{FIELD}%s{RECORD}' "$({LISTENING})"
"""


def wait_and_probe(runtime: Runtime, name: str, launch_id: str) -> str:
    """Return the script that waits until the server listens or has ended, then probes.

    It ends at once with what `mkdir` or `cat` says where the session's folder cannot be made or has
    no room, and before long where the launch has not even begun: in the background it has nobody to
    tell.
    """
    return (
        session_directory(runtime, name)
        + f"""\
umask 077
mkdir -p "$directory/runtime" && printf '%0{ROOM_BYTES}d' 0 | cat >"$directory/room" ||
  {{ rm -f "$directory/room"; exit {NO_FOLDER}; }}
rm -f "$directory/room"
listens() {{
  port=$(printf ':%04X ' "${{1%%[!0-9]*}}")
  {LISTENING} | grep -q "$port"
}}
wanted={shlex.quote(launch_id)} launched='' turns=0
while [ "$turns" -lt {WAIT_SECONDS * POLLS_A_SECOND} ]; do
  # `read` is the shell's own: a program a turn would take from the server's time to start.
  [ "$launched" = "$wanted" ] || {{ read -r launched <"$directory/launch"; }} 2>/dev/null
  if [ "$launched" = "$wanted" ]; then
    [ ! -e "$directory/exit" ] || break
    for file in {_runtime_files(('"$directory"/runtime',))}; do
      [ -e "$file" ] || continue
      text=$(cat "$file" 2>/dev/null)
      # Not only there: whole. And jupyter_server 2 listens a moment after it has written it.
      case $text in *'}}') ! listens "${{text#*port?: }}" || break 2;; esac
    done
  elif [ "$turns" -gt {LAUNCH_SECONDS * POLLS_A_SECOND} ]; then exit {NOT_LAUNCHED}; fi
  turns=$((turns + 1))
  {pause(1 / POLLS_A_SECOND)}
done
"""
        + probe(runtime, name)
    )


def end(runtime: Runtime, name: str, pid: int, process_start: str, *, patience: int = 10) -> str:
    """Return the script that waits `patience` seconds for a server to end, then ends it.

    The process is told by pid and start time together, so that a pid which was given to
    somebody else meanwhile is left alone. Prints `asked`, `killed` or nothing.
    """
    return session_directory(runtime, name) + (
        '[ ! -d "$directory" ] || echo stopped >"$directory/ended"\n'
        f'same() {{ case "$(cat /proc/{pid}/stat 2>/dev/null)" in '
        # A zombie waits only for its parent, and a container without an init has none that looks.
        f"*') Z '*) ;; *') '*' {process_start} '*) return 0;; esac; return 1; }}\n"
        f"gone() {{ {wait_while('same', '$1', every=1 / POLLS_A_SECOND, too_long='return 1')}}}\n"
        f"gone {patience} || {{ echo asked; kill {pid}; gone 10; }} ||"
        f" {{ echo killed; kill -9 {pid}; gone 5; }}\n"
        'rm -rf "$directory/runtime" "$directory/config"\n'
        "! same\n"
    )


def abandon(runtime: Runtime, name: str, launch_id: str) -> str:
    """Return the script that ends the server of one launch, which cannot be used.

    A launch that has not come to its server yet never does; and another one's, which somebody else
    may have begun meanwhile, is left alone.
    """
    return session_directory(runtime, name) + (
        f"launch={shlex.quote(launch_id)} launched=''\n"
        'umask 077; mkdir -p "$directory" && : >"$directory/abandoned-$launch"\n'
        'pid=$(cat "$directory/pid-$launch" 2>/dev/null) && kill "$pid"\n'
        '{ read -r launched <"$directory/launch"; } 2>/dev/null\n'
        '[ "$launched" != "$launch" ] || rm -rf "$directory/runtime" "$directory/config"\n'
    )


def clear(runtime: Runtime, name: str) -> str:
    """Return the script that removes the session's folder once its server has ended."""
    return session_directory(runtime, name) + (
        'pid=$(cat "$directory/pid" 2>/dev/null)\n'
        + wait_while(
            '[ -n "$pid" ] && [ ! -e "$directory/exit" ]',
            10,
            every=1 / POLLS_A_SECOND,
            too_long='{ kill -9 "$pid"; break; }',
        )
        + 'rm -rf "$directory"\n'
    )


def show_log(runtime: Runtime, name: str, *, lines: int, follow: bool = False) -> str:
    """Return the script that prints the last `lines` of the log, and what comes, if wanted."""
    tail = f'tail -n {lines} {"-F " if follow else ""}"$directory/jupyter.log" 2>/dev/null'
    return (
        session_directory(runtime, name)
        + '[ -e "$directory/jupyter.log" ] || exit 6\n'
        + (until_hang_up(tail) if follow else f"exec {tail}\n")
    )
