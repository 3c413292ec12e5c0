"""Scripts for `sh` that find, watch, end and clear a session's server.

Each session has a folder on the server's side (0700):

- `runtime/`: Jupyter's `JUPYTER_RUNTIME_DIR`, with `jpserver-PID.json` (before: `nbserver-`), its
  token (0600) and, on a host without containers, the unix socket `sock-…` that it listens on
- `launch`, `user`: which launch wrote these files, and the user of the host who began it
- `jupyter.log`; `idle-stop`: the idle time in seconds; `awake`: what keeps the server
- `exit`: the exit status once it has ended; `ended`: `stopped` by a command, or `idle`
- `launching-…`: the lock of a launch (see `launch`); `joined-LAUNCH`: the launch waits for a
  server that another began; `shared-LAUNCH`: another waits for the server of this launch
- `output/`: what cells printed (see the room `output`)

Needed are `sh`, coreutils or busybox, `grep`, `sed`, and `/proc`. `jupyter server list` takes 20
times as long, and deletes the files of servers whose pid it cannot see.
"""

from __future__ import annotations

import re
import shlex

from jlremote.jupyter import recorder
from jlremote.place.host.addresses import LISTENING, LISTENING_UNIX
from jlremote.place.host.contract import PRINT_FIELD as FIELD
from jlremote.place.host.contract import PRINT_GROUP as GROUP
from jlremote.place.host.contract import PRINT_RECORD as RECORD
from jlremote.place.host.shell_text import until_hang_up, wait_while
from jlremote.place.runtimes.on_node import JOBS, PROBE
from jlremote.place.runtimes.runtime import Runtime
from jlremote.place.runtimes.scripts import variables

# Among the arguments of the shell that waits for a server's end, and of no probe.
LAUNCH_MARK = 'export JUPYTER_RUNTIME_DIR="$directory/runtime"'
# The user who began it, there as well; see `launch`.
LAUNCHER = re.compile(r'printf %s (\S+) >"\$directory/user"')
POLLS_A_SECOND = 40
NO_FOLDER = variables.NO_FOLDER
ENDED = "ended"

# Begins the name of a server's socket in the runtime folder; the id of its launch follows, so a
# forward to an earlier server meets no other one. A socket's path has 107 bytes at most.
SOCKET = "sock-"
SOCKETS = f"""{LISTENING_UNIX} | grep -F " $directory/runtime/{SOCKET}\""""


def session_directory(runtime: Runtime, name: str) -> str:
    """Return shell text that sets `$directory` to the session's folder.

    In a container it exits with `NO_FOLDER` if others could have planted files there, and finds the
    folder of a container that was renamed since.
    """
    folder = f'directory="{runtime.servers_folder}"/{shlex.quote(name)}\n'
    if not runtime.has_containers:
        return folder
    # Where other containers share /tmp, their folders lie there, too: the server must run here.
    former = """\
[ -e "$directory/runtime" ] || for former in "${directory%/*}"/*/runtime/*-[0-9]*.json; do
  number=${former##*-}; former=${former%/*}
  ! tr '\\0' '\\n' 2>/dev/null <"/proc/${number%.json}/environ" |
    grep -qxF "JUPYTER_RUNTIME_DIR=$former" || { directory=${former%/runtime}; break; }
done 2>/dev/null
"""
    return f"{variables.PRIVATE} || exit {NO_FOLDER}\n{folder}{former}"


def own_servers(runtime: Runtime) -> str:
    """Return the script that probes every session of processes of the host, a group each."""
    return f"""\
for directory in "{runtime.servers_folder}"/*; do
[ -d "$directory/runtime" ] || continue
{_PROBE.replace("FILES", OWN_FILES)}
printf 'definition{FIELD}%s{RECORD}' "$(cat "$directory/container.json" 2>/dev/null)"
printf '{GROUP}'
done
"""


def probe(runtime: Runtime, name: str) -> str:
    """Return the script that describes the session's folder and the servers there.

    Without a container only the session's own server counts: on a shared host, a server that was
    started by hand serves another purpose. A job's server was probed on its node, by `probe_here`.
    """
    if not runtime.in_jobs:
        return probe_here(runtime, name)
    return f"""\
{session_directory(runtime, name)}job={JOBS}/{shlex.quote(name)}
if [ -e "$job/{PROBE}" ] && [ ! -e "$job/exit" ] && [ ! -e "$job/ending" ]; then
  cat "$job/{PROBE}"
else
{_PROBE.replace("FILES", "")}fi
"""


def probe_here(runtime: Runtime, name: str) -> str:
    """Return the script of `probe` for the machine that has the server's process."""
    return session_directory(runtime, name) + _PROBE.replace("FILES", runtime_files(runtime))


FOREIGN_FOLDERS = (
    '"${JUPYTER_RUNTIME_DIR:-/nonexistent}"',
    '"${XDG_RUNTIME_DIR:-/nonexistent}"/jupyter',
    '"${XDG_DATA_HOME:-$HOME/.local/share}"/jupyter/runtime',
    "/root/.local/share/jupyter/runtime",
    "/home/*/.local/share/jupyter/runtime",
)

# Shell text that becomes, with FILES behind each, the folders of servers that run: an image may
# have set their variables, also for another user, whose processes not even root can look into here.
_TOLD = r"""$(
for told in $(grep -Ls ipykernel /dev/null $(grep -ls jupyter /proc/[0-9]*/cmdline)); do
  set -- cat "${told%/cmdline}/environ"
  [ -O "$told" ] ||
    set -- setpriv --clear-groups $(stat -c "--reuid=%u --regid=%g" "$told") "$@"
  "$@"
done 2>/dev/null | tr '\0' '\n' | sed -n '
  s,^JUPYTER_RUNTIME_DIR=\(/.*\),\1FILES,p; s,^JUPYTER_DATA_DIR=\(/.*\),\1/runtimeFILES,p
  s,^XDG_RUNTIME_DIR=\(/.*\),\1/jupyterFILES,p; s,^XDG_DATA_HOME=\(/.*\),\1/jupyter/runtimeFILES,p
  s,^HOME=\(/.*\),\1/.local/share/jupyter/runtimeFILES,p' | sort -u)"""
TOLD_FOLDERS = _TOLD.replace("FILES", "")


# The runtime files of JupyterLab 3 and later and Notebook 7; of JupyterLab 2 and Notebook 6.
_KINDS = ("jpserver-*.json", "nbserver-*.json")
OWN_FILES = " ".join(f'"$directory"/runtime/{kind}' for kind in _KINDS)
_FOREIGN_FILES = " ".join(
    (
        *(f"{folder}/{kind}" for folder in FOREIGN_FOLDERS for kind in _KINDS),
        _TOLD.replace("FILES", "/[jn]?server-*.json"),
    )
)


def runtime_files(runtime: Runtime) -> str:
    """Return the patterns of the runtime files of a session, of any server in a container."""
    return f"{OWN_FILES} {_FOREIGN_FILES}" if runtime.has_containers else OWN_FILES


# Shell text that exits if a server runs that jlr did not launch; a file that ends in `}` is whole.
UNLESS_FOREIGN = f"""for file in {_FOREIGN_FILES}; do
  [ ! -e "$file" ] || case $(cat "$file") in *'}}') exit 1;; esac
done"""


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
jupyter=$(PATH=$PATH:${{directory%/*}}/.packages/bin  # see `packages`
{variables.CONDA_ON_PATH}\
command -v jupyter-lab || command -v jupyter-notebook || command -v jupyter)
printf 'jupyter{FIELD}%s{RECORD}' "$jupyter"
printf 'exit{FIELD}%s{RECORD}' "$(cat "$directory/exit" 2>/dev/null)"
printf 'ended{FIELD}%s{RECORD}' "$(cat "$directory/ended" 2>/dev/null)"
printf 'idle-stop{FIELD}%s{RECORD}' "$(cat "$directory/idle-stop" 2>/dev/null)"
printf 'launcher{FIELD}%s{RECORD}' "$(cat "$directory/user" 2>/dev/null)"
{recorder.LOOK}for file in FILES; do tell "$file"; done
printf 'listening{FIELD}%s{RECORD}' "$({LISTENING})"
printf 'sockets{FIELD}%s{RECORD}' "$({SOCKETS})"
printf 'directory{FIELD}%s{RECORD}' "$directory"  # the last: without it, an answer is cut
"""


def end(runtime: Runtime, name: str, pid: int, process_start: str, *, patience: int = 10) -> str:
    """Return the script that waits `patience` seconds for a server to end, then ends it.

    It prints `asked`, `killed` or nothing.
    """
    return session_directory(runtime, name) + (
        '[ ! -d "$directory" ] || echo stopped >"$directory/ended"\n'
        + _same(pid, process_start)
        + f"gone() {{ {wait_while('same', '$1', every=1 / POLLS_A_SECOND, too_long='return 1')}}}\n"
        f"gone {patience} || {{ echo asked; kill {pid}; gone 10; }} ||"
        f" {{ echo killed; kill -9 {pid}; gone 5; }}\n"
        'rm -rf "$directory/runtime" "$directory/config"\n'
        "! same\n"
    )


def _same(pid: int, process_start: str) -> str:
    # `read` is built into the shell: a program for each look would slow down the server's end.
    return (
        f"same() {{ {{ read -r stat </proc/{pid}/stat; }} 2>/dev/null || return; case $stat in "
        # A zombie has ended; in a container without an init it stays.
        f"*') Z '*) ;; *') '*' {process_start} '*) return 0;; esac; return 1; }}\n"
    )


def watch(runtime: Runtime, name: str, pid: int, process_start: str) -> str:
    """Return the script that prints a group when other cells run, now and then, and at the end."""
    # No `sleep` outlasts it, which would count as a program of the container.
    looking = f"""{_same(pid, process_start)}trap 'kill $!; exit' TERM; turns=10
while same; do
  now=; {{ read -r now <"$directory/output/running"; }} 2>/dev/null
  [ "$turns" -lt 10 ] && [ "$now" = "$before" ] || {{ printf '{GROUP}'; before=$now turns=0; }}
  turns=$((turns + 1)); sleep 1 & wait $!
done
printf '{ENDED}{GROUP}'"""
    return session_directory(runtime, name) + until_hang_up(f"{{ {looking}; }}")


def clear(runtime: Runtime, name: str) -> str:
    """Return the script that removes the session's folder once its server has ended.

    A launch that was abandoned before it began must find its mark in there, which it takes away.
    """
    folder, waiting = session_directory(runtime, name), ""
    if not runtime.in_jobs:  # else its server ended with the job, on another machine
        marked = 'ls "$directory"/abandoned-* >/dev/null 2>&1'
        waiting = wait_while(marked, 3, every=1 / POLLS_A_SECOND) + await_end(runtime, name)
    return f'{folder}{waiting}rm -rf "$directory"\n'


def await_end(runtime: Runtime, name: str) -> str:
    """Return the script that waits until the shell of the session's server is done."""
    return session_directory(runtime, name) + (
        'pid=$(cat "$directory/pid" 2>/dev/null)\n'
        + wait_while(
            '[ -n "$pid" ] && [ ! -e "$directory/exit" ]',
            10,
            every=1 / POLLS_A_SECOND,
            too_long='{ kill -9 "$pid"; break; }',
        )
    )


MOMENT = "\037"
_STAMP = "+\037%Y-%m-%d %H:%M:%S"


def show_log(
    runtime: Runtime,
    name: str,
    *,
    lines: int | None,
    follow: bool = False,
    since: int | None = None,
) -> str:
    """Return the script that prints the last `lines` of the log (`None` for all), and later ones.

    With `since` (see `times.since`) the first line is `MOMENT` and that moment, as it would stand
    in the log, by the clock and zone of the server. A job without a server prints its own log.
    """
    last = "+1" if lines is None else str(lines)
    moment = ""
    if since is not None:
        at = str(since) if since >= 0 else f"$(($(date +%s) - {-since}))"
        # The second form is that of BSD and macOS.
        moment = f'at={at}\ndate -d "@$at" "{_STAMP}" 2>/dev/null || date -r "$at" "{_STAMP}"\n'
    tail = f'tail -qn {last} {"-F " if follow else ""}"$@" 2>/dev/null'
    of_job = f"""\
job={JOBS}/{shlex.quote(name)}
if [ ! "$1" -nt "$job/command" ] && {{ [ -s "$job/log" ] || [ -s "$job/stderr" ]; }}; then
  set -- "$job/log" "$job/stderr"
fi
"""
    return f"""\
{session_directory(runtime, name)}set -- "$directory/jupyter.log"
{of_job if runtime.in_jobs else ""}[ -e "$1" ] || exit 6
{moment}{until_hang_up(tail) if follow else f"exec {tail}"}
"""
