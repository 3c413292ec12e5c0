"""Keys of registries: in the laptop's keychain, and given to an engine for one command only."""

from __future__ import annotations

import base64
import json
import secrets
import shlex
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from jlremote.errors import JlrError
from jlremote.images.image_names import DOCKER_HUB
from jlremote.laptop.record_files import NAMES, Records
from jlremote.laptop.secrets import open_secrets
from jlremote.place.host.shell_text import command_line
from jlremote.place.runtimes.engine.kinds import Engine

# Docker Hub in docker's settings.
_DOCKER_HUB_SERVER = "https://index.docker.io/v1/"


@dataclass(frozen=True)
class RegistryKey:
    """A user name at a registry, with its password or API key."""

    user: str
    key: str = field(repr=False)


@dataclass(frozen=True)
class RegistryLogin:
    """The record of a key: a command without one opens no keychain, which may be locked."""

    registry: str
    host: str  # what was typed after `ssh`


_LOGINS = Records("registries", RegistryLogin, ("registry", "host"), NAMES)


def find(host: str, registries: Iterable[str]) -> dict[str, RegistryKey]:
    """Return the keys that `jlr image login HOST` has kept for a host, by registry."""
    logins = [name for name in dict.fromkeys(registries) if _LOGINS.find(name, host) is not None]
    keychain = open_secrets() if logins else None
    if keychain is None:
        return {}
    kept = {name: (keychain.get(_account(name, host)) or "").partition(":") for name in logins}
    return {name: RegistryKey(user, key) for name, (user, colon, key) in kept.items() if colon}


def keep(host: str, registry: str, key: RegistryKey) -> str:
    """Keep a key for a host, and return the name of the keychain (`JlrError`: it refuses)."""
    keychain = open_secrets()
    if keychain is None or not keychain.set(_account(registry, host), _written(key)):
        raise JlrError("the keychain refuses the key", hint="unlock the keychain and try again")
    _LOGINS.save(RegistryLogin(registry, host))
    return keychain.name


def forget(host: str, registry: str) -> bool:
    """Forget a host's key of a registry; return whether there was one."""
    keychain = open_secrets()
    if keychain is None or not keychain.delete(_account(registry, host)):
        return False
    _LOGINS.delete_key(registry, host)
    return True


def docker_config(keys: Mapping[str, RegistryKey]) -> bytes:
    """Return the text of a docker `config.json` with `keys`, on one line."""
    basic = {name: base64.b64encode(_written(key).encode()) for name, key in keys.items()}
    auths = {server(name): {"auth": code.decode("ascii")} for name, code in basic.items()}
    return json.dumps({"auths": auths}).encode() + b"\n"


def server(registry: str) -> str:
    """Return the name of a registry in docker's settings."""
    return _DOCKER_HUB_SERVER if registry == DOCKER_HUB else registry


def _account(registry: str, host: str) -> str:
    return f"registry {registry} on {host}"


def _written(key: RegistryKey) -> str:
    return f"{key.user}:{key.key}"


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
    keyed = engine.with_variables(DOCKER_CONFIG=folder, REGISTRY_AUTH_FILE=f"{folder}/config.json")
    return f"{_WITH_KEYS.replace('FOLDER', make)}{command(keyed)}"


def with_key_file(command: str) -> str:
    """Return a script that runs a command while `$REGISTRY_AUTH_FILE` has the keys of stdin."""
    return f"{_WITH_KEYS.replace('FOLDER', _FOLDER)}{command}"


def with_key_to_login(login: str) -> str:
    """Return a script that passes the next line of stdin, the key, to `login`."""
    # Only the shell's `read` and a here-document see the key: no argument, no environment.
    return f"IFS= read -r key || exit 74\n{login} <<EOF\n$key\nEOF\n"


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
    """Return a script that forgets the key of a registry, and prints `KEPT` if there was one."""
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
