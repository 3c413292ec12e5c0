"""The launch of JupyterLab, or of Notebook where that is missing, as text for `sh`."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import dataclass

from jlremote.jupyter import configuration, launch_lock, recorder
from jlremote.jupyter.configuration import HOST_PORT
from jlremote.jupyter.scripts import LAUNCH_MARK, SOCKET, session_directory
from jlremote.place.host.shell_text import KEEP_ODD_VARIABLES
from jlremote.place.runtimes.processes import PATH_FILE
from jlremote.place.runtimes.runtime import Runtime
from jlremote.place.runtimes.scripts import variables

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
            .replace("LAUNCH_MARK", LAUNCH_MARK)
            .replace("OPTIONS", shlex.join(options))
        )
        beginning = f"launch={shlex.quote(self.id)}\n{launch_lock.functions(self.runtime)}"
        turn = _TURN.replace("IS_STARTING", "is_starting" if self.join else "false")
        return session_directory(self.runtime, self.name) + beginning + turn + script

    def _settings(self) -> str:
        files = configuration.files(
            self.name,
            self.hostname,
            self.idle_stop,
            socket=f"{SOCKET}{self.id}" if self.on_socket else None,
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
    return (
        f"(\n{session_directory(runtime, name)}once=$directory/once-{shlex.quote(launch_id)}\n"
        f'[ ! -e "$once" ] || exit 0\n'
        f'umask 077; mkdir -p "$directory" && : >"$once"\n{launching})\n'
    )
