"""The launch of JupyterLab, or of Notebook where that is missing, as text for `sh`.

A launch that finds another one under way, or a Jupyter that a person or the container's own command
began a moment ago, waits for that server and launches none.

The lock is a symbolic link `launching-NUMBER` in the session's folder, made in one step. Its target
names the shell that launches, by boot, pid and start time (see proc(5)), so it dies with its owner.
Of several the highest number counts: to delete a dead one would be a race. An owner that launches
nothing gives the lock back: its link gets a target that is no process, again in one step.
"""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import dataclass

from jlremote.jupyter import configuration, recorder, scripts
from jlremote.jupyter.configuration import HOST_PORT
from jlremote.place.host.addresses import LISTENING
from jlremote.place.host.contract import PRINT_FIELD as FIELD
from jlremote.place.host.contract import PRINT_RECORD as RECORD
from jlremote.place.host.shell_text import KEEP_ODD_VARIABLES, pause
from jlremote.place.runtimes.processes import PATH_FILE
from jlremote.place.runtimes.runtime import Runtime
from jlremote.place.runtimes.scripts import variables

WAIT_SECONDS = 120
LAUNCH_SECONDS = 20
JOINED_TURNS = 6
ROOM_BYTES = 1 << 16  # several times what is written before Jupyter listens
NOT_LAUNCHED = 75  # sysexits.h: EX_TEMPFAIL
OTHER_ENDED = 69  # sysexits.h: EX_UNAVAILABLE; the server that was waited for did not come up

# The longest wait for another launch, and for a Jupyter that a person started.
_UNDER_WAY_SECONDS = 120
_STARTING_SECONDS = 60
_CLOCK_TICKS = 100  # a second: USER_HZ, the same on all architectures that run containers

# A server's program among the first words of a command line, or a wrapper that will run one: an
# init, an image's entrypoint, `sh -c`. The `jupyter` command becomes the program that it names.
_WORDS = 8
_SERVER = (
    "(^|[ /])(jupyter[-_ ](lab|labhub|notebook|nbclassic|server)|jupyterhub-singleuser|"
    r"start-(notebook|singleuser)(\.sh|\.py)?|-m (jupyterlab|notebook|nbclassic))( |$)"
)
# On a shared host only a server with the session's own folder counts.
_OF_SESSION = """\
tr '\\0' '\\n' <"$1/environ" 2>/dev/null | grep -qxF "JUPYTER_RUNTIME_DIR=$directory/runtime\""""

# Sets the shell's positional parameters to the command of JupyterLab, or else of Notebook.
# `jupyter-lab` comes first: the `jupyter` command needs a tenth of a second to find it.
ON_PATH = f"""\
{variables.CONDA_ON_PATH}if command -v jupyter-lab >/dev/null; then set -- jupyter-lab
elif command -v jupyter-notebook >/dev/null; then set -- jupyter-notebook
elif command -v jupyter >/dev/null; then set -- jupyter lab
else set -- python3 -m jupyterlab; fi
"""

# The same for an interpreter, with the programs in its folder.
_BESIDE = f"""\
export PATH; sh -c 'export -p' | grep '^export PATH=' >"$directory/{PATH_FILE}"
module=jupyterlab
[ -e "${{python%/*}}/jupyter-lab" ] || [ ! -e "${{python%/*}}/jupyter-notebook" ] || module=notebook
set -- "$python" -m $module
"""


# A notebook in `/`, or where one may not write, could not be saved or found again, nor in a folder
# that all may write to. Not for an interpreter that was named from the working folder.
_IN_FOLDER = """\
case ${python:-/} in /*)
  if [ "$PWD" = / ] || [ ! -w . ]; then
    for folder in FOLDERS; do
      [ ! -d "$folder" ] || [ ! -w "$folder" ] || [ -k "$folder" ] || { cd "$folder" && break; }
    done
  fi;;
esac
"""


def with_python(python: str) -> str:
    """Return the shell text for the JupyterLab of an interpreter or a virtual environment."""
    return f"""\
python={shlex.quote(python)}
case $python in '~/'*) python=$HOME/${{python#'~/'}};; esac
[ ! -d "$python" ] || python=$python/bin/python
case $python in */*) PATH=${{python%/*}}:$PATH;; esac
{_BESIDE}"""


def with_conda(environment: str) -> str:
    """Return the shell text for the JupyterLab of a conda environment, by name or folder."""
    return f"""\
environment={shlex.quote(environment)}
case $environment in base) within=;; *) within=/envs/$environment;; esac
set -- "$environment" ~/.conda"$within"
for base in "$(conda info --base 2>/dev/null || echo /none)" {variables.CONDA_PLACES}; do
  set -- "$@" "$base$within"
done
for folder do [ ! -x "$folder/bin/python" ] || break; done
PATH=$folder/bin:$PATH
python=$folder/bin/python
{_BESIDE}"""


@dataclass(frozen=True)
class Launch:
    """A launch of JupyterLab in a session's folder."""

    runtime: Runtime
    name: str  # the session's, also the begin of its `base_url`
    id: str  # marks the files of this launch
    hostname: str  # the name that browsers have for the server
    bind_address: str | None = None  # what it listens on, by default what the runtime says
    jupyter: str = ON_PATH  # shell text that sets the positional parameters to its command
    idle_stop: int = 0  # the seconds without work after which it ends by itself, 0 for never
    on_socket: bool = False  # whether it listens on a unix socket, where it can
    # where it opens if the working folder is no place for notebooks: the first that is one
    folders: Sequence[str] = ()
    join: bool = True  # whether a server that another command began, and that starts, is joined
    user: str = ""  # the person's name on the host, for other laptops and for other users
    record: bool = True  # whether what its kernels publish is recorded

    def script(self) -> str:
        """Return the script that runs JupyterLab until it ends, or joins another launch."""
        options = (
            "--no-browser",
            f"--ip={self.bind_address or self.runtime.bind_address}",
            *(() if self.runtime.has_containers or self.on_socket else (f"--port={HOST_PORT}",)),
        )
        opening = _IN_FOLDER.replace("FOLDERS", shlex.join(self.folders)) if self.folders else ""
        script = (
            _LAUNCH.replace("CONFIGURE\n", self._settings())
            .replace("PATH_FILE", PATH_FILE)
            .replace("FIND_JUPYTER\n", self.jupyter + opening)
            .replace("KEEP_ODD_VARIABLES\n", KEEP_ODD_VARIABLES)
            .replace("LAUNCH_MARK", scripts.LAUNCH_MARK)
            .replace("OPTIONS", shlex.join(options))
        )
        beginning = f"launch={shlex.quote(self.id)}\n{_lock_functions(self.runtime)}"
        turn = _TURN.replace("IS_STARTING", "is_starting" if self.join else "false")
        return scripts.session_directory(self.runtime, self.name) + beginning + turn + script

    def _settings(self) -> str:
        files = configuration.files(
            self.name,
            self.hostname,
            self.idle_stop,
            socket=f"{scripts.SOCKET}{self.id}" if self.on_socket else None,
            or_port=not self.runtime.in_jobs,
            record=self.record,
        )
        settings = "".join(
            f"cat >\"$directory/config/{file}\" <<'END' || exit\n{text}END\n"
            for file, text in files.items()
        )
        if self.idle_stop:
            settings += f'echo {self.idle_stop} >"$directory/idle-stop" || exit\n'
        if not self.record:
            settings += recorder.OFF
        if self.user:
            settings += f'printf %s {shlex.quote(self.user)} >"$directory/user" || exit\n'
        return settings


# A start that fails leaves a server alone that another one has joined; see `abandon`.
_TURN = """\
umask 077
mkdir -p "$directory" || exit 1
if ! take_lock; then
  : >"$directory/shared-${holder##*:}"; : >"$directory/joined-$launch"; exit 0
elif IS_STARTING; then
  give_lock_back # this shell may live longer than that server, and the next start comes soon
  : >"$directory/joined-$launch"; exit 0
fi
"""


_LAUNCH = """\
# With Jupyter's cookie secret: a cookie of an earlier server opens nothing.
rm -rf "$directory/runtime" "$directory/config"
mkdir -p "$directory/runtime" "$directory/config" || exit 1
[ ! -e "$directory/jupyter.log" ] || mv -f "$directory/jupyter.log" "$directory/jupyter.log.1"
rm -f "$directory"/exit "$directory"/ended "$directory"/idle-stop "$directory"/user \\
  "$directory"/pid "$directory"/recorder "$directory"/awake "$directory"/PATH_FILE
# On a full disk nothing is launched: without its configuration Jupyter would have no settings.
CONFIGURE
echo "$launch" >"$directory/launch" || exit
[ "$(id -u)" != 0 ] || root_allowed=--allow-root
# A container with a user id without a passwd entry gets HOME=/, which it cannot write to.
[ -w "${HOME:-/nonexistent}" ] || { HOME=$directory/home; mkdir -p "$HOME"; export HOME; }
LAUNCH_MARK
unset JUPYTER_NO_CONFIG
export JUPYTER_CONFIG_PATH="$directory/config${JUPYTER_CONFIG_PATH:+:$JUPYTER_CONFIG_PATH}"
FIND_JUPYTER
KEEP_ODD_VARIABLES
# Not in the background: a shell makes background processes ignore SIGINT, and then Ctrl-C works
# in none of JupyterLab's terminals.
sh -c 'echo $$ >"$0/pid"; echo $$ >"$0/pid-$1"
[ ! -e "$0/abandoned-$1" ] || exit  # see `abandon`, which checks in the other order
shift; exec "$@"' "$directory" "$launch" "$@" OPTIONS $root_allowed \\
  >"$directory/jupyter.log" 2>&1 </dev/null
status=$?
rm -f "$directory/pid-$launch" "$directory/abandoned-$launch"
# Jupyter's words when it ends after its idle time.
[ "$status" != 0 ] || ! grep -q 'No kernels .*; shutting down' "$directory/jupyter.log" ||
  echo idle >"$directory/ended"
echo "$status" >"$directory/exit"
"""


def launch_once(runtime: Runtime, name: str, launch_id: str, launching: str) -> str:
    """Return a new container's own command: it runs `launching` at the first start only."""
    # In a subshell, whose `exit` does not end the container.
    folder = scripts.session_directory(runtime, name)
    return (
        f"(\n{folder}once=$directory/once-{shlex.quote(launch_id)}\n"
        f'[ ! -e "$once" ] || exit 0\n'
        f'umask 077; mkdir -p "$directory" && : >"$once"\n{launching})\n'
    )


def wait_and_probe(
    runtime: Runtime, name: str, launch_id: str, *, patience: float = LAUNCH_SECONDS
) -> str:
    """Return the script that waits until the server listens or has ended, then probes.

    It fails at once if the session's folder cannot be written to, and after `patience` seconds if
    the launch, in the background, has not begun. If the launch has joined another one, it waits for
    that server, and fails with `OTHER_ENDED` if that ends instead.
    """
    files, seconds = scripts.runtime_files(runtime), WAIT_SECONDS + patience - LAUNCH_SECONDS
    return f"""\
{scripts.session_directory(runtime, name)}umask 077
mkdir -p "$directory/runtime" && printf '%0{ROOM_BYTES}d' 0 | cat >"$directory/room" ||
  {{ rm -f "$directory/room"; exit {scripts.NO_FOLDER}; }}
rm -f "$directory/room"
{_lock_functions(runtime)}listens() {{
  case $1 in
  *'"sock": "'"$directory"/*) {scripts.SOCKETS} >/dev/null; return;;
  *'"sock": "/'*) return 0;;
  esac
  port=${{1#*port?: }}
  port=$(printf ':%04X ' "${{port%%[!0-9]*}}")
  {LISTENING} | grep -q "$port"
}}
serves() {{
  pid=${{1##*-}}
  [ -d "/proc/${{pid%.json}}" ] || return
  text=$(cat "$1" 2>/dev/null)
  # A file with its last brace is complete. jupyter_server 2 listens a moment after writing it.
  case $text in *'}}') listens "$text";; *) return 1;; esac
}}
wanted={shlex.quote(launch_id)} launched='' turns=0
while [ "$turns" -lt {seconds * scripts.POLLS_A_SECOND:.0f} ]; do
  # `read` is built into the shell: starting programs would slow down the server's start.
  [ "$launched" = "$wanted" ] || {{ read -r launched <"$directory/launch"; }} 2>/dev/null
  if [ "$launched" = "$wanted" ]; then
    [ ! -e "$directory/exit" ] || break
    for file in {scripts.OWN_FILES}; do [ ! -e "$file" ] || ! serves "$file" || break 2; done
  elif [ -e "$directory/joined-$wanted" ]; then
    # Seldom, as each look starts programs.
    turns=$((turns + {JOINED_TURNS - 1})); {pause((JOINED_TURNS - 1) / scripts.POLLS_A_SECOND)}
    if lock_held; then
      for file in {scripts.OWN_FILES}; do [ ! -e "$file" ] || ! serves "$file" || break 2; done
    else
      for file in {files}; do [ ! -e "$file" ] || ! serves "$file" || break 2; done
      is_starting || {{ rm -f "$directory/joined-$wanted"; exit {OTHER_ENDED}; }}
    fi
  elif [ "$turns" -gt {patience * scripts.POLLS_A_SECOND:.0f} ]; then exit {NOT_LAUNCHED}; fi
  turns=$((turns + 1))
  {pause(1 / scripts.POLLS_A_SECOND)}
done
[ ! -e "$directory/joined-$wanted" ] || printf 'joined{FIELD}yes{RECORD}'
{scripts.probe_here(runtime, name)}"""


def abandon(runtime: Runtime, name: str, launch_id: str) -> str:
    """Return the script that ends the server of one launch, also before it has started."""
    return scripts.session_directory(runtime, name) + (
        f"launch={shlex.quote(launch_id)} launched=''\n"
        '[ ! -e "$directory/shared-$launch" ] || exit 0\n'
        'umask 077; mkdir -p "$directory" && : >"$directory/abandoned-$launch"\n'
        'pid=$(cat "$directory/pid-$launch" 2>/dev/null) && kill "$pid"\n'
        '{ read -r launched <"$directory/launch"; } 2>/dev/null\n'
        '[ "$launched" != "$launch" ] || rm -rf "$directory/runtime" "$directory/config"\n'
    )


def is_shared(runtime: Runtime, name: str, launch_id: str) -> str:
    """Return the script that says whether a launch joined another one, or another joined it."""
    return scripts.session_directory(runtime, name) + (
        f"launch={shlex.quote(launch_id)}\n"
        '[ -e "$directory/shared-$launch" ] || [ -e "$directory/joined-$launch" ]\n'
    )


def _lock_functions(runtime: Runtime) -> str:
    """Return shell functions that need `$directory`.

    `lock_held` says whether a launch is under way, and sets `holder`; `take_lock` takes the lock
    for the launch `$launch`, or fails; `give_lock_back` is for one that launches nothing;
    `is_starting` says whether a server of this user is starting.
    """
    return _FUNCTIONS.replace("OF_SESSION", ":" if runtime.has_containers else _OF_SESSION)


# `identify` sets `process` and its `age` in seconds; it fails for one that has ended.
_FUNCTIONS = f"""\
{{ read -r boot </proc/sys/kernel/random/boot_id; }} 2>/dev/null
identify() {{
  {{ read -r stat <"/proc/$1/stat"; }} 2>/dev/null || return
  set -- "${{stat%% *}}" ${{stat##*) }}
  [ "$2" != Z ] || return
  process=$boot:$1; shift 20; process=$process:$1
  read -r uptime nothing </proc/uptime
  age=$((${{uptime%%.*}} - $1 / {_CLOCK_TICKS}))
}}
last_lock() {{
  number=0
  for lock in "$directory"/launching-*; do
    [ ! -L "$lock" ] || [ "${{lock##*-}}" -le "$number" ] || number=${{lock##*-}}
  done
}}
lock_held() {{
  last_lock
  holder=$(readlink "$directory/launching-$number") || return
  pid=${{holder#*:}}; pid=${{pid%%:*}}
  identify "$pid" && [ "$process" = "${{holder%:*}}" ] && [ "$age" -lt {_UNDER_WAY_SECONDS} ]
}}
take_lock() {{
  tries=0
  identify self || return
  me=$process:$launch
  until lock_held; do
    own=$((number + 1)) tries=$((tries + 1))
    [ "$tries" -lt 20 ] || exit 1
    ln -s "$me" "$directory/launching-$own" 2>/dev/null || continue
    last_lock
    if [ "$number" = "$own" ]; then
      for lock in "$directory"/launching-*; do [ "${{lock##*-}}" = "$own" ] || rm -f "$lock"; done
      return 0
    fi
    rm -f "$directory/launching-$own"
  done
  return 1
}}
give_lock_back() {{
  ln -s none "$directory/returned-$launch" &&
    mv -f "$directory/returned-$launch" "$directory/launching-$own"
}}
of_session() {{ OF_SESSION; }}
is_starting() {{
  for each in /proc/[0-9]*; do
    [ -r "$each/environ" ] && identify "${{each##*/}}" && [ "$age" -lt {_STARTING_SECONDS} ] &&
      of_session "$each" && tr '\\0\\n' '  ' <"$each/cmdline" 2>/dev/null |
      cut -d ' ' -f 1-{_WORDS} | grep -qE '{_SERVER}' && return
  done
  return 1
}}
"""
