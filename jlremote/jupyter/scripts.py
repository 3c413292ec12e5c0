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

from jlremote.host.script import until_hang_up
from jlremote.jupyter import configuration

GROUP_END = "\035"  # ASCII's group separator
# What the shell that waits for a server's end has among its arguments, and no probe.
LAUNCH_MARK = 'export JUPYTER_RUNTIME_DIR="$directory/runtime"'
FIELD, RECORD = "\\037", "\\036"  # ASCII's unit and record separators; JSON cannot hold them raw
WAIT_SECONDS = 120
LAUNCH_SECONDS = 20
POLLS_A_SECOND = 40
NO_FOLDER = 73  # sysexits.h: EX_CANTCREAT
NOT_LAUNCHED = 75  # sysexits.h: EX_TEMPFAIL

# Where Jupyter begins to look for a port on a host that is not a container: beyond those that jlr
# forwards, as both ends may be one machine, and beside the one that everybody's Jupyter wants.
HOST_PORT = 8988

# How the runtime files begin: JupyterLab 3 and later, Notebook 7; JupyterLab 2, Notebook 6.
KINDS = ("jpserver", "nbserver")


def session_directory(name: str, *, engine: bool) -> str:
    """Return the shell assignment of `$directory`, the session's folder.

    A container's own `/tmp` can be written whoever the user is in there; a host's `/tmp` belongs
    to everybody, so without an engine it is the XDG state folder. Machines may share that one,
    and a process id of one means nothing on another, so each has a folder of its own in it.
    """
    root = "/tmp/jlr-$(id -u)" if engine else _STATE  # noqa: S108
    return f'directory="{root}"/{shlex.quote(name)}\n'


_STATE = "${XDG_STATE_HOME:-$HOME/.local/state}/jlr/servers/$(uname -n)"


def own_servers() -> str:
    """Return the script that probes every session of the host itself, each ended by `GROUP_END`."""
    files = _runtime_files(('"$directory"/runtime',))
    return (
        f'for directory in "{_STATE}"/*; do\n[ -d "$directory/runtime" ] || continue\n'
        + _PROBE.replace("FILES", files)
        + "printf '\\035'\ndone\n"
    )


def probe(name: str, *, engine: bool) -> str:
    """Return the script that tells about the session's folder and every server within reach.

    Without an engine only the session's own server counts: on a host that many share, a server
    that was started by hand is somebody's business.
    """
    folders = ('"$directory"/runtime', *(_FOREIGN_FOLDERS if engine else ()))
    return session_directory(name, engine=engine) + _PROBE.replace("FILES", _runtime_files(folders))


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
printf 'listening{FIELD}%s{RECORD}' "$(grep -h ' 0A ' /proc/net/tcp /proc/net/tcp6 2>/dev/null)"
"""


# How to run JupyterLab, or Notebook where there is no other, as the shell's positional parameters.
# `jupyter-lab` comes first: the `jupyter` command spends a tenth of a second on finding it.
ON_PATH = """\
if command -v jupyter-lab >/dev/null; then set -- jupyter-lab
elif command -v jupyter-notebook >/dev/null; then set -- jupyter-notebook
elif command -v jupyter >/dev/null; then set -- jupyter lab
else set -- python3 -m jupyterlab; fi
"""

# The same for an interpreter with the programs beside it.
_BESIDE = """\
module=jupyterlab
[ -e "${python%/*}/jupyter-lab" ] || [ ! -e "${python%/*}/jupyter-notebook" ] || module=notebook
set -- "$python" -m $module
"""


# Nearly all that Python makes while a server starts stays for good, and to look for garbage in it
# takes an eighth of that time. The configuration switches that on again. As in a script's own
# start, what is imported comes from beside it and not from the current folder.
_WITHOUT_COLLECTION = """\
import gc, sys
gc.disable()
del sys.argv[0]
sys.path[0] = sys.argv[0].rpartition("/")[0]
import runpy
runpy.run_path(sys.argv[0], run_name="__main__")
"""
_FASTER = f"""\
program=$(command -v "$1") first=
[ ! -f "$program" ] || read -r first <"$program"
case $first in
*' '*) ;;
'#!'/*/python*)
  shift
  # Of the program's own name, by which it is known among the processes.
  faster=$directory/config/${{program##*/}}
  cat >"$faster" <<'END'
{_WITHOUT_COLLECTION}END
  set -- "${{first#??}}" "$faster" "$program" "$@";;
esac
"""


def with_python(python: str) -> str:
    """Return how to run the JupyterLab of an interpreter or a virtual environment's folder."""
    return f"""\
python={shlex.quote(python)}
case $python in '~/'*) python=$HOME/${{python#'~/'}};; esac
[ ! -d "$python" ] || python=$python/bin/python
case $python in */*) PATH=${{python%/*}}:$PATH;; esac
{_BESIDE}"""


def with_conda(environment: str) -> str:
    """Return how to run the JupyterLab of a conda environment, by name or folder."""
    return f"""\
environment={shlex.quote(environment)}
base=$(conda info --base 2>/dev/null)
for folder in "$environment" "$base/envs/$environment" ~/.conda/envs/"$environment" \
    ~/*conda3/envs/"$environment" ~/mini*/envs/"$environment" /opt/*conda*/envs/"$environment"; do
  [ ! -x "$folder/bin/python" ] || break
done
PATH=$folder/bin:$PATH
python=$folder/bin/python
{_BESIDE}"""


def launch(
    name: str,
    launch_id: str,
    *,
    engine: bool,
    bind_address: str,
    jupyter: str = ON_PATH,
    idle_stop: int = 0,
) -> str:
    """Return the script that runs JupyterLab in the session's folder until it ends.

    Args:
        name: the session's name, also its `base_url`.
        launch_id: what tells this launch's traces from those of an earlier one.
        engine: whether this is a container.
        bind_address: what Jupyter listens on.
        jupyter: shell text that sets the positional parameters to what runs JupyterLab.
        idle_stop: seconds without work after which it ends by itself, 0 for never.
    """
    options = (
        "--no-browser",
        f"--ip={bind_address}",
        *(() if engine else (f"--port={HOST_PORT}",)),
    )
    settings = "".join(
        f"cat >\"$directory/config/{file}\" <<'END'\n{text}END\n"
        for file, text in configuration.files(f"/{name}/", idle_stop).items()
    )
    if idle_stop:
        settings += f'echo {idle_stop} >"$directory/idle-stop"\n'
    script = (
        _LAUNCH.replace("CONFIGURE\n", settings)
        .replace("FIND_JUPYTER\n", jupyter + _FASTER)
        .replace("LAUNCH_MARK", LAUNCH_MARK)
        .replace("OPTIONS", shlex.join(options))
    )
    return session_directory(name, engine=engine) + f"launch={shlex.quote(launch_id)}\n" + script


_LAUNCH = """\
umask 077
mkdir -p "$directory/runtime" "$directory/config" || exit 1
[ ! -e "$directory/jupyter.log" ] || mv -f "$directory/jupyter.log" "$directory/jupyter.log.1"
rm -f "$directory"/exit "$directory"/ended "$directory"/idle-stop "$directory"/pid \\
  "$directory"/runtime/*.json
echo "$launch" >"$directory/launch"
CONFIGURE
[ "$(id -u)" != 0 ] || root_allowed=--allow-root
# A container run with a uid that has no passwd entry gets HOME=/, which it may not write.
[ -w "${HOME:-/nonexistent}" ] || { HOME=$directory/home; mkdir -p "$HOME"; export HOME; }
LAUNCH_MARK
export JUPYTER_CONFIG_PATH="$directory/config${JUPYTER_CONFIG_PATH:+:$JUPYTER_CONFIG_PATH}"
FIND_JUPYTER
# Not in the background: a shell makes background processes ignore SIGINT, and then Ctrl-C works
# in none of JupyterLab's terminals.
sh -c 'echo $$ >"$0/pid"; exec "$@"' "$directory" "$@" OPTIONS $root_allowed \\
  >"$directory/jupyter.log" 2>&1 </dev/null
status=$?
# Jupyter's words when nothing has worked for as long as it was told.
[ "$status" != 0 ] || ! grep -q 'No kernels .*; shutting down' "$directory/jupyter.log" ||
  echo idle >"$directory/ended"
echo "$status" >"$directory/exit"
"""


def launch_once(name: str, launch_id: str, launching: str, *, engine: bool) -> str:
    """Return the script that runs `launching` unless it has done so before.

    For a new container's own command, which the engine runs again at each later start; by then
    Jupyter is launched, or left alone, by whoever starts the container.
    """
    return session_directory(name, engine=engine) + (
        f"once=$directory/once-{shlex.quote(launch_id)}\n"
        f'[ -e "$once" ] || (\numask 077; mkdir -p "$directory" && : >"$once"\n{launching})\n'
    )


def wait_and_probe(name: str, launch_id: str, *, engine: bool) -> str:
    """Return the script that waits until the server listens or has ended, then probes.

    It ends at once with what `mkdir` says where the session's folder cannot be made, and before
    long where the launch has not even begun: in the background it has nobody to tell.
    """
    return (
        session_directory(name, engine=engine)
        + f"""\
umask 077
mkdir -p "$directory/runtime" || exit {NO_FOLDER}
listens() {{
  port=$(printf ':%04X ' "${{1%%[!0-9]*}}")
  grep -q "$port.* 0A " /proc/net/tcp /proc/net/tcp6 2>/dev/null
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
  sleep {1 / POLLS_A_SECOND} 2>/dev/null || sleep 1
done
"""
        + probe(name, engine=engine)
    )


def end(name: str, pid: int, process_start: str, *, engine: bool, patience: int = 10) -> str:
    """Return the script that waits `patience` seconds for a server to end, then ends it.

    The process is told by pid and start time together, so that a pid which was given to
    somebody else meanwhile is left alone. Prints `asked`, `killed` or nothing.
    """
    return session_directory(name, engine=engine) + (
        '[ ! -d "$directory" ] || echo stopped >"$directory/ended"\n'
        f'same() {{ case "$(cat /proc/{pid}/stat 2>/dev/null)" in '
        # A zombie waits only for its parent, and a container without an init has none that looks.
        f"*') Z '*) ;; *') '*' {process_start} '*) return 0;; esac; return 1; }}\n"
        f"gone() {{ turns=0; while same; do\n"
        f'  [ "$turns" -lt $(($1 * {POLLS_A_SECOND})) ] || return 1\n'
        f"  turns=$((turns + 1)); sleep {1 / POLLS_A_SECOND} 2>/dev/null || sleep 1; done; }}\n"
        f"gone {patience} || {{ echo asked; kill {pid}; gone 10; }} ||"
        f" {{ echo killed; kill -9 {pid}; gone 5; }}\n"
        'rm -rf "$directory/runtime" "$directory/config"\n'
        "! same\n"
    )


def abandon(name: str, *, engine: bool) -> str:
    """Return the script that ends a server which was just launched and never answered."""
    return session_directory(name, engine=engine) + (
        'pid=$(cat "$directory/pid" 2>/dev/null) && [ ! -e "$directory/exit" ] && kill "$pid"\n'
        'rm -rf "$directory/runtime" "$directory/config"\n'
    )


def clear(name: str, *, engine: bool) -> str:
    """Return the script that removes the session's folder once its server has ended."""
    return session_directory(name, engine=engine) + (
        'pid=$(cat "$directory/pid" 2>/dev/null)\n'
        f'turns=0; while [ -n "$pid" ] && [ ! -e "$directory/exit" ]; do\n'
        f'  [ "$turns" -lt {10 * POLLS_A_SECOND} ] || {{ kill -9 "$pid"; break; }}\n'
        f"  turns=$((turns + 1)); sleep {1 / POLLS_A_SECOND} 2>/dev/null || sleep 1; done\n"
        'rm -rf "$directory"\n'
    )


def show_log(name: str, *, engine: bool, lines: int, follow: bool = False) -> str:
    """Return the script that prints the last `lines` of the log, and what comes, if wanted."""
    tail = f'tail -n {lines} {"-F " if follow else ""}"$directory/jupyter.log" 2>/dev/null'
    return (
        session_directory(name, engine=engine)
        + '[ -e "$directory/jupyter.log" ] || exit 6\n'
        + (until_hang_up(tail) if follow else f"exec {tail}\n")
    )
