"""Images that are files of a host, as Apptainer takes them: find, list, pull, and their keys."""

from __future__ import annotations

import posixpath
import re
import shlex
from collections.abc import Sequence

from jlremote.errors import Authentication, JlrError, NotFound, Usage
from jlremote.hosts.context import Context
from jlremote.hosts.engines import look_further
from jlremote.images import image_names, registry_keys
from jlremote.images.image_commands import Image
from jlremote.images.image_errors import MISSING_THERE, REFUSED, reason
from jlremote.images.transfers import Transfer, follow, surviving_disconnect
from jlremote.laptop.settings.options import IMAGE_RUNTIMES
from jlremote.link.client.link import Link
from jlremote.place.host.contract import (
    FIELD,
    PRINT_FIELD,
    PRINT_RECORD,
    records,
    run_script,
    understood,
)
from jlremote.place.host.shell_text import command_line, own_folder
from jlremote.place.runtimes.engine.engine_errors import EngineMissing
from jlremote.text import one_line
from jlremote.times import utc
from jlremote.untrusted import number, whole_number

# Unless the setting `image-folder` names another one, as in a workspace with more room.
DEFAULT_FOLDER = '"${XDG_DATA_HOME:-$HOME/.local/share}/jlr/images"'
SUFFIX = ".sif"
DOCKER = "docker://"
NO_FOLDER = 73  # sysexits.h: EX_CANTCREAT
NO_AUTHFILE = 78  # sysexits.h: EX_CONFIG
MISSING = 66  # sysexits.h: EX_NOINPUT

_COMMAND_NOT_FOUND = 127
_FULL = re.compile("no space left|disk quota exceeded")


def is_reference(typed: str) -> bool:
    """Return whether an image is named by its source (`docker://…`) and not by its file."""
    return "://" in typed


def file_name(typed: str) -> str:
    """Return the name of a reference's own file: `/` becomes `+`, which none has (or `Usage`)."""
    scheme, _, rest = typed.partition("://")
    if f"{scheme}://" != DOCKER:
        return re.sub(r"[^A-Za-z0-9._-]", "+", f"{scheme}/{rest}") + SUFFIX
    name = image_names.parse(rest)
    tag = "" if name.tag is None else f"@{name.tag}"
    digest = "" if name.digest is None else f"@{name.digest.replace(':', '-')}"
    source = f"{name.registry}/{name.repository}".replace("/", "+").replace(":", "-")
    return f"{source}{tag}{digest}{SUFFIX}"


def _folder(setting: str | None) -> str:
    """Return shell text for the folder of pulled images, below the home unless absolute."""
    if setting is None:
        return DEFAULT_FOLDER
    if setting.startswith("/"):
        return shlex.quote(setting)
    return f'"$HOME"/{shlex.quote(setting.removeprefix("~/"))}'


# Prints who owns `$image`, or what it leads to, unless that is this user or root.
_STRANGER = f"""\
  stranger=$({{ stat -c '%u %U' "$image"; stat -Lc '%u %U' "$image"; }} |
    grep -v -e "^0 " -e "^$(id -u) " | head -n 1)
  [ -z "$stranger" ] || printf '{PRINT_FIELD}%s' "${{stranger#* }}"
"""


def find_script(typed: str, setting: str | None) -> str:
    """Return the script that prints the absolute path of an image, or fails with `MISSING`.

    A file's name alone may be in the home or among the pulled images. There another user may have
    put the image: that one's name follows, behind a field separator.
    """
    pulled = _folder(setting)
    if is_reference(typed):
        places = [f"{pulled}/{shlex.quote(file_name(typed))}"]
    elif typed.startswith(("/", "~/")):
        places = [_folder(typed)]
    else:
        places = [_folder(typed), f"{pulled}/{shlex.quote(typed)}"]
    return (
        f"for image in {' '.join(places)}; do\n"
        '  [ -e "$image" ] || continue\n'
        '  cd "$(dirname "$image")" && printf "%s/%s" "$(pwd -P)" "$(basename "$image")"\n'
        f"{'' if typed.startswith('/') else _STRANGER}  exit\n"
        f"done\nexit {MISSING}\n"
    )


def read_found(printed: str) -> tuple[str, str]:
    """Return the path that `find_script` printed, and another owner's name or nothing."""
    path, _, stranger = printed.partition(FIELD)
    return path, one_line(stranger)


def on_host(host: Link, program: str, typed: str, folder: str | None, context: Context) -> str:
    """Return an image's path there; a missing reference is pulled (`NotFound`, `JlrError`)."""
    path = found_there(host, typed, folder, context)
    if path is None and is_reference(typed):
        fetch(host, program, typed, folder, context)
        path = found_there(host, typed, folder, context)
    if path is None:
        raise NotFound(
            f"there is no image `{one_line(typed)}` on `{host.name}`",
            hint=f"a `{SUFFIX}` file or a folder is named by its path there, from "
            f"your home on; `{DOCKER}NAME` is pulled",
        )
    return path


def found_there(host: Link, typed: str, folder: str | None, context: Context) -> str | None:
    """Return the path of an image on the host, and warn if another user owns the file."""
    printed = run_script(host, find_script(typed, folder))
    if printed.status != 0:
        return None
    path, stranger = read_found(printed.stdout)
    if stranger:
        context.progress.note(
            f"the image `{one_line(path)}` belongs to `{stranger}`, another user of "
            f"`{host.name}`, who can change what it runs"
        )
    return path


def place(host: Link, program: str, typed: str, folder: str | None) -> str:
    """Return the absolute path of a pulled reference, there or not (`JlrError`: without folder)."""
    make = f"mkdir -p {_folder(folder)} && cd {_folder(folder)} || exit {NO_FOLDER}\n"
    done = run_script(host, f'{make}printf "%s/%s" "$(pwd -P)" {shlex.quote(file_name(typed))}')
    if done.status != 0:
        raise pull_error(program, typed, host.name, [done.complaint], done.status)
    return done.stdout


def list_script(setting: str | None) -> str:
    """Return the script that prints size, time and path of each image in the folder."""
    return (
        f"for image in {_folder(setting)}/*{SUFFIX}; do\n"
        '  [ -f "$image" ] || continue\n'
        f"  printf '%s{PRINT_FIELD}%s{PRINT_FIELD}%s{PRINT_RECORD}' "
        '"$(stat -L -c %s "$image")" "$(stat -L -c %Y "$image")" "$image"\n'
        "done\n"
    )


@understood("the shell")
def read_list(printed: str) -> list[Image]:
    """Return the images that `list_script` printed, the latest first; their id is their path."""
    images = []
    for size, changed, path in records(printed):
        name = posixpath.basename(path).removesuffix(SUFFIX)
        place, _, tag = name.partition("@")
        built = utc(number(changed))
        images.append(Image(path, place.replace("+", "/"), tag or None, built, whole_number(size)))
    return sorted(images, key=lambda image: image.created, reverse=True)


def listed(host: Link, folder: str | None) -> list[Image]:
    """Return the images in the folder of pulled ones, the latest first."""
    return read_list(run_script(host, list_script(folder)).stdout)


# Users may share the folder, so all but the image is in one of the user's own below it, which stays
# the present one: others may be able to rename it. Only one pulls a file there at a time: who has
# waited takes what the other one has pulled. It is complete or not there, as it is renamed at the
# end, and a link in its place is not followed. Without a setting of the site's own, what the
# program keeps and unpacks lies there, too, as the home may have a quota. The key is the first line
# of stdin.
def pull_script(program: str, typed: str, setting: str | None, *, keyed: bool) -> str:
    """Return the script that pulls a reference; `keyed`: stdin's first line is a `config.json`."""
    place, caches = _folder(setting), program.upper()
    pull = f'{program} pull --force "$@" "$part" {shlex.quote(typed)} 2>&1'
    return f"""\
file={shlex.quote(file_name(typed))}
mkdir -p {place} && cd -P {place} || exit {NO_FOLDER}
foreign() {{
  printf 'FATAL: %s belongs to %s, who alone can replace it\\n' "$file" "$(stat -c %U "../$file")"
  exit 1
}}
{own_folder(".jlr-", "700", f"exit {NO_FOLDER}")}before=$(ls -di "../$file" 2>/dev/null)
[ -z "$before" ] || [ -O "../$file" ] || [ -O .. ] || [ ! -k .. ] || foreign
exec 9>"$file.lock" || exit {NO_FOLDER}
! command -v flock >/dev/null || flock 9
now=$(ls -di "../$file" 2>/dev/null)
[ -z "$now" ] || [ "$now" = "$before" ] || exit 0
part=$file.part keys=
trap 'rm -rf "$part" ${{keys:+"$keys"}}' EXIT
trap : PIPE; trap 'exit 129' HUP; trap 'exit 130' INT; trap 'exit 143' TERM
mkdir -p cache unpacked || exit {NO_FOLDER}
: "${{{caches}_CACHEDIR:=/proc/$$/cwd/cache}}" "${{{caches}_TMPDIR:=/proc/$$/cwd/unpacked}}"
export {caches}_CACHEDIR {caches}_TMPDIR
(umask 077; mkdir -p "${caches}_CACHEDIR" "${caches}_TMPDIR") || exit {NO_FOLDER}
set --
{_with_key(program) if keyed else ""}{pull} || exit
mv -fT "$part" "../$file" 2>/dev/null || [ -z "$before" ] && [ -e "../$file" ] || foreign
"""


def _with_key(program: str) -> str:
    return f"""\
IFS= read -r config || exit 74
{program} pull --help 2>/dev/null | grep -q -e --authfile || exit {NO_AUTHFILE}
keys=$(mktemp -d "${{XDG_RUNTIME_DIR:-/nonexistent}}/jlr-XXXXXXXX" 2>/dev/null || mktemp -d) || exit
cat >"$keys/config.json" <<EOF
$config
EOF
unset config; set -- --authfile "$keys/config.json"
"""


def pull(host: Link, program: str, typed: str, folder: str | None, context: Context) -> Image:
    """Pull an image also if it is there: a tag may mean another one (`Usage`: no reference)."""
    if not is_reference(typed):
        what = f"`{one_line(typed)}` does not say where it comes from"
        raise Usage(what, hint=f"`{DOCKER}{one_line(typed)}` pulls it from a registry")
    fetch(host, program, typed, folder, context)
    found_there(host, typed, folder, context)
    end = f"/{file_name(typed)}"
    return next(each for each in listed(host, folder) if each.id.endswith(end))


def fetch(host: Link, program: str, typed: str, folder: str | None, context: Context) -> None:
    """Pull an image as a step, and join it again after a broken connection (see `pull_error`)."""
    pulling, key = puller(host, program, typed, folder)
    script, pulled = surviving_disconnect(command_line(("sh", "-c", pulling))), Transfer()
    with context.progress.step(f"Pull {typed}"):
        status = follow(host, script, [key] if key else [], pulled, context)
    if status == _COMMAND_NOT_FOUND:
        look_further(host, program, EngineMissing(f"`{program}` was not found on `{host.name}`"))
        fetch(host, program, typed, folder, context)
    elif status != 0:
        raise pull_error(program, typed, host.name, pulled.complaint, status)


def puller(host: Link, program: str, typed: str, folder: str | None) -> tuple[str, bytes]:
    """Return the script that pulls an image, and its stdin: the registry's key, if kept."""
    keys = {}
    if typed.startswith(DOCKER):
        name = image_names.parse(typed.removeprefix(DOCKER))
        keys = registry_keys.find(host.name, (name.registry,))
    script = pull_script(program, typed, folder, keyed=bool(keys))
    return script, registry_keys.docker_config(keys) if keys else b""


def login_script(program: str, registry: str, user: str, *, keep: bool) -> str:
    """Return the login by stdin's key, noted in `$REGISTRY_AUTH_FILE`, with `keep` in settings."""
    file = "" if keep else '--authfile="$REGISTRY_AUTH_FILE" '
    begin = command_line((program, "registry", "login", f"--username={user}", "--password-stdin"))
    return f"{begin} {file}{shlex.quote(DOCKER + registry)}"


def logout_script(program: str, registry: str) -> str:
    """Return the script that forgets the key in the program's settings; see `KEPT`."""
    logout = command_line((program, "registry", "logout", f"{DOCKER}{registry}"))
    files = "~/.apptainer/docker-config.json ~/.singularity/docker-config.json"
    known = f"grep -qsF {shlex.quote(registry)} {files} ~/.apptainer/remote.yaml"
    return registry_keys.forgotten(known, logout)


def login_hint(program: str, typed: str, host: str) -> str:
    """Return the hint for a registry that refused a pull."""
    name = typed.removeprefix(DOCKER)
    registry = image_names.parse(name).registry if typed.startswith(DOCKER) else None
    login = image_names.login_command(host, registry, "--runtime", program)
    return f"`{login}` keeps a key for it, in place of one that is wrong"


def pull_error(program: str, typed: str, host: str, lines: Sequence[str], status: int) -> JlrError:
    """Return why a pull failed, by its last lines and exit status."""
    message, complaint = f"cannot pull `{one_line(typed)}`", "\n".join(lines).lower()
    if status == NO_AUTHFILE:
        return JlrError(
            f"{message}: `{program}` on `{host}` takes no key for one pull",
            hint=command_line((program, "remote", "login", "--password-stdin", typed))
            + " there keeps it on the host",
        )
    message = f"{message}: {reason(lines)}"
    if _FULL.search(complaint) or status == NO_FOLDER:
        return JlrError(
            message,
            hint="`jlr config set image-folder FOLDER`, or JLR_IMAGE_FOLDER, names a folder of the "
            "host with more room; images are pulled and unpacked there",
        )
    if REFUSED.search(complaint):
        return Authentication(message, hint=login_hint(program, typed, host))
    if MISSING_THERE.search(complaint):
        return NotFound(message, hint="check its name and tag")
    return JlrError(message)


def program_on(host: Link) -> str | None:
    """Return the host's program for images that are files, `None` if it has none."""
    tried = " || ".join(f"command -v {name} >/dev/null && echo {name}" for name in IMAGE_RUNTIMES)
    return next(iter(run_script(host, tried).stdout.split()), None)


def way(host: Link) -> str | None:
    """Return the hint for a host that has no engine but runs images as files."""
    if (program := program_on(host)) is None:
        return None
    return (
        f"`jlr image pull {host.name} {DOCKER}IMAGE` makes a file of an image for "
        f"`{one_line(program)}`, which is there"
    )
