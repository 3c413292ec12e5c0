"""Scripts that give an engine a registry's key for one command only."""

from __future__ import annotations

import json
import secrets
import shlex
from collections.abc import Callable, Sequence

from jlremote.place.host.shell_text import command_line
from jlremote.place.runtimes.engine.kinds import Engine

KEPT = "kept"

# The first line of stdin is the text of a `config.json`. With this folder for its settings docker
# would not know which daemon the user has chosen, so that is asked first. SIGPIPE would kill the
# shell before it cleans up.
_WITH_KEYS = """\
[ -n "$DOCKER_HOST" ] ||
  DOCKER_HOST=$(docker context inspect --format '{{.Endpoints.docker.Host}}' 2>/dev/null)
umask 077
FOLDER
[ -n "$DOCKER_CONFIG" ] || exit 73
trap 'rm -rf "$DOCKER_CONFIG"' EXIT
trap : PIPE; trap 'exit 129' HUP; trap 'exit 130' INT; trap 'exit 143' TERM
IFS= read -r config || exit 74
cat >"$DOCKER_CONFIG/config.json" <<EOF
$config
EOF
unset config
REGISTRY_AUTH_FILE=$DOCKER_CONFIG/config.json
export DOCKER_HOST DOCKER_CONFIG REGISTRY_AUTH_FILE
"""

_FOLDER = """\
DOCKER_CONFIG=$(mktemp -d "${XDG_RUNTIME_DIR:-/nonexistent}/jlr-XXXXXXXX" 2>/dev/null || mktemp -d)
"""

# Only the shell's `read` and a here-document see the key: no argument, no environment.
_KEY_TO_LOGIN = """\
IFS= read -r key || exit 74
{login} <<EOF
$key
EOF
"""


def with_keys(engine: Engine, command: Callable[[Engine], str]) -> str:
    """Return a script that runs an engine's command with the keys in the first line of stdin.

    Docker finds them by the folder of its settings, podman by their file. `sudo` passes only
    variables on its command line, so behind `sudo` the folder's name is chosen here; `command`
    returns the command of the engine that it is given.
    """
    if not engine.behind_sudo:
        return with_key_file(command(engine))
    folder = f"/tmp/jlr-{secrets.token_hex(16)}"  # noqa: S108  # `mkdir` fails if it is there
    make = f"mkdir -m 700 {folder} && DOCKER_CONFIG={folder}"
    told = engine.with_variables(DOCKER_CONFIG=folder, REGISTRY_AUTH_FILE=f"{folder}/config.json")
    return f"{_WITH_KEYS.replace('FOLDER', make)}{command(told)}"


def with_key_file(command: str) -> str:
    """Return a script that runs a command while `$REGISTRY_AUTH_FILE` has the keys of stdin."""
    return f"{_WITH_KEYS.replace('FOLDER', _FOLDER)}{command}"


def with_key_to_login(login: str) -> str:
    """Return a script that passes the next line of stdin, the key, to `login`."""
    return _KEY_TO_LOGIN.replace("{login}", login)


def with_secrets(folder: str, names: Sequence[str], command: str) -> str:
    """Return a script that runs a command while files in a new folder hold secrets.

    Each is a line of stdin in base64; the folder, of which `names` are plain file names, is
    readable by its owner only.
    """
    lines = "".join(
        f"IFS= read -r secret || exit 74\nbase64 -d >{folder}/{name} <<EOF || exit 74\n"
        "$secret\nEOF\n"
        for name in names
    )
    return f"""\
( umask 077
mkdir {folder} || exit 73
trap 'rm -rf {folder}' EXIT
trap : PIPE; trap 'exit 129' HUP; trap 'exit 130' INT; trap 'exit 143' TERM
{lines}unset secret
{command}
)"""


def logout_script(engine: Engine, server: str) -> str:
    """Return a script that forgets the key of a registry, and prints `KEPT` if there was one.

    Docker removes a key without a word of whether there was one. What root keeps is not seen.
    """
    logout = command_line(engine("logout", server))
    if "podman" in engine.name:
        known = f"{command_line(engine('login', '--get-login', server))} >/dev/null 2>&1"
    elif engine.behind_sudo:
        return f"{logout} >/dev/null\n"
    else:
        folder = '"${DOCKER_CONFIG:-$HOME/.docker}"'
        known = f"grep -qsF {shlex.quote(json.dumps(server))} {folder}/config.json"
    return forgotten(known, logout)


def forgotten(known: str, logout: str) -> str:
    """Return a script that runs `logout` and prints `KEPT` if `known` succeeds."""
    return f"{known} || exit 0\necho {KEPT}; {logout} >/dev/null\n"


def one_at_a_time(name: str, command: str) -> str:
    """Return a script that runs `command` once an earlier one of this name and user has ended.

    That one may have outlasted its connection. Hosts without `flock` do not wait.
    """
    return f"""\
lock=${{XDG_RUNTIME_DIR:-$HOME}}/.jlr-{name}
if command -v flock >/dev/null && (: >>"$lock") 2>/dev/null; then exec 9>>"$lock"; flock 9; fi
{command}
status=$?
rm -f "$lock"
(exit "$status")"""


def surviving_disconnect(command: str) -> str:
    """Return a script whose `command` goes on when the connection breaks.

    Then SIGPIPE ends the first `cat`, and the second reads on. A signal from sshd, as after
    Ctrl-C, still ends the command.
    """
    return f"""\
exec 4>&1
status=$({{ {{ {command}
echo $? >&3; }} 2>&1 | {{ cat; cat >/dev/null; }} >&4; }} 3>&1)
exit "$status"
"""
