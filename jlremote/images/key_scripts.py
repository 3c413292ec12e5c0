"""Shell text that gives an engine a registry's key for one command, and takes it away again."""

from __future__ import annotations

import secrets
from collections.abc import Callable

from jlremote.runtimes.engine.engine import Engine

# The text of a `config.json` is the first line of stdin. `docker login` would do the same, and
# beyond that hand the key to any credential helper that it finds on the host. Without its own
# settings docker would not know which engine the user has chosen, so that is asked first. A shell
# that is ended says so, and with nobody to hear it that would end it again, before it cleans up.
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

# Only the shell's own `read` and a here-document touch the key: no argument, no environment.
_KEY_TO_LOGIN = """\
IFS= read -r key || exit 74
{login} <<EOF
$key
EOF
"""


def with_keys(engine: Engine, command: Callable[[Engine], str]) -> str:
    """Return shell text that runs an engine's command with the keys that stdin begins with.

    Docker is told of them by the folder of its settings, podman by their file. `sudo` lets no
    variable through that is not named on its command line, so then the folder is one that we name.

    Args:
        engine: which.
        command: makes the command of the engine that it is given.
    """
    if not engine.behind_sudo:
        return f"{_WITH_KEYS.replace('FOLDER', _FOLDER)}{command(engine)}"
    folder = f"/tmp/jlr-{secrets.token_hex(16)}"  # noqa: S108  # `mkdir` fails if it is there
    make = f"mkdir -m 700 {folder} && DOCKER_CONFIG={folder}"
    told = engine.told(DOCKER_CONFIG=folder, REGISTRY_AUTH_FILE=f"{folder}/config.json")
    return f"{_WITH_KEYS.replace('FOLDER', make)}{command(told)}"


def with_key_to_login(login: str) -> str:
    """Return shell text that gives `login` the next line of stdin as its own."""
    return _KEY_TO_LOGIN.replace("{login}", login)


def surviving_disconnect(command: str) -> str:
    """Return shell text whose `command` goes on when nobody can be told about it any more.

    When a connection breaks, whoever writes to it is ended: here that is the first `cat`, and the
    second one reads on. When a person ends it, sshd sends all of it a signal.
    """
    return f"""\
exec 4>&1
status=$({{ {{ {command}
echo $? >&3; }} 2>&1 | {{ cat; cat >/dev/null; }} >&4; }} 3>&1)
exit "$status"
"""
