"""The part of ssh's configuration by which a plain command shares the link's connection.

OpenSSH's client looks for another `ssh` at its `ControlPath`, and passes its command and streams to
it. A link listens at such sockets (`link/ssh_server/control_sockets`): a command then begins at
once, and none of its bytes is encrypted on the laptop twice.

Decision:

Why not for all that ssh does? In that protocol nothing tells `ssh -N` from a shell, a forward that
is refused is told as an error, and one that is not lives as long as the link. So ssh is given the
path only for a command or subsystem without a terminal: `Match exec` runs a small script, which
reads the command line of the `ssh` that runs it. Whatever it does not know makes a connection of
its own, as without it. The part is in a file of its own, which only OpenSSH includes: other readers
of ssh's configuration fail at `Match exec`.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

from jlremote.laptop import known_names, paths
from jlremote.place.host.shell_text import command_line

_SCRIPT = r"""# Run by ssh's `Match exec`; $1 is the folder of the control sockets.
# It succeeds if that ssh only wants a command or subsystem, without a terminal or a forward.
ssh=/proc/$PPID
tr '\0' '\n' <"$ssh/cmdline" | {
  IFS= read -r word
  [ "${word##*/}" = ssh ] || exit 1
  is_empty=
  while IFS= read -r word; do
    option=
    case $word in
    -n) is_empty=yes ;;
    -[46Caqsx] | -T | --) ;;
    -[Filp]) IFS= read -r option ;;
    -o) IFS= read -r option || exit 1 ;;
    -o*) option=${word#-o} ;;
    -*) exit 1 ;;
    *) break ;;
    esac
    case $word in
    -o*)
      case $option in
      PermitLocalCommand[=\ ]no | ClearAllForwardings[=\ ]yes | RemoteCommand[=\ ]none) ;;
      RequestTTY[=\ ]no | ForwardAgent[=\ ]no | ForwardX11[=\ ]no | StdinNull[=\ ]no) ;;
      SendEnv[=\ ]* | SetEnv[=\ ]* | BatchMode[=\ ]* | LogLevel[=\ ]* | Compression[=\ ]*) ;;
      ConnectTimeout[=\ ]* | ConnectionAttempts[=\ ]* | ServerAlive*[=\ ]* | TCPKeepAlive[=\ ]*) ;;
      StrictHostKeyChecking[=\ ]* | UserKnownHostsFile[=\ ]* | *Authentication[=\ ]*) ;;
      *) exit 1 ;;
      esac ;;
    esac
  done
  name=${word##*@}
  case $name in */* | '') exit 1 ;; esac
  IFS= read -r word || exit 1
  case $word in -* | '') exit 1 ;; esac
  [ -S "$1/$name" ] || exit 1
  # A terminal's keys are for the programs that belong to it.
  [ -n "$is_empty" ] || ! [ -c "$ssh/fd/0" ] || [ "$ssh/fd/0" -ef /dev/null ]
}
"""
# Settings that ask for more than a command, as `ssh -G` prints them, unless they are off.
_MORE = (
    *("localforward", "remoteforward", "dynamicforward", "remotecommand", "localcommand"),
    *("forwardagent", "forwardx11", "tunnel", "requesttty"),
)
_OFF = ("no", "false", "auto", "none")
_PATIENCE = 5.0


def files() -> Path | None:
    """Return the file to include, and make it if it is missing.

    It is `None` on systems without it, and where ssh could not read the paths in it: it knows no
    quotes within quotes here.

    Raises:
        JlrError: it cannot be written.
    """
    if sys.platform != "linux":
        return None
    folder = paths.private_directory(paths.data_directory() / "ssh")
    script, included = folder / "wants_command.sh", folder / "connection_sharing"
    sockets = known_names.control_folder()
    asked = command_line(("exec", "/bin/sh", str(script), str(sockets)))
    if '"' in f"{asked}{sockets}":
        return None
    lines = (
        f'Match originalhost *{known_names.SUFFIX} exec "{_escaped(asked)}"',
        f'    ControlPath "{_escaped(str(sockets))}/%n"',
        "    ControlMaster no",
    )
    for path, content in ((script, _SCRIPT), (included, "\n".join(lines) + "\n")):
        if not path.exists() or path.read_text(encoding="utf-8") != content:
            paths.write_whole(path, content)
    return included


def is_wanted(name: str, ssh_config: str | None) -> bool:
    """Return whether ssh's own settings for a name ask for no more than a command."""
    program = shutil.which("ssh")
    if sys.platform != "linux" or program is None:
        return False
    config = () if ssh_config is None else ("-F", ssh_config)
    try:
        done = subprocess.run(
            (program, *config, "-G", "--", name),
            stdin=subprocess.DEVNULL, capture_output=True, timeout=_PATIENCE, check=False,
        )  # fmt: skip
    except (OSError, subprocess.TimeoutExpired):
        return False
    lines = done.stdout.decode("utf-8", "replace").splitlines()
    settings = [line.partition(" ") for line in lines]
    asks_more = any(key in _MORE and value not in _OFF for key, _, value in settings)
    return done.returncode == 0 and not asks_more


def _escaped(text: str) -> str:
    return text.replace("%", "%%")
