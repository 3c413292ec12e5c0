"""`jlr image list` and `jlr image save`: list the images of a host, and save a container as one."""

from __future__ import annotations

import secrets
from dataclasses import dataclass
from typing import Any

from jlremote.errors import JlrError, NotFound, Usage
from jlremote.hosts.context import Context
from jlremote.hosts.engines import engine_on
from jlremote.hosts.links import link_of, link_on
from jlremote.hosts.requests import ANY_ENGINE, EngineChoice
from jlremote.images import image_commands, image_files, image_names
from jlremote.images.image_commands import Image
from jlremote.images.image_errors import commit_error
from jlremote.jupyter.scripts import FOREIGN_FOLDERS, TOLD_FOLDERS
from jlremote.laptop.sessions import SessionRecord
from jlremote.laptop.settings.options import IMAGE_RUNTIMES
from jlremote.place.host.contract import Completed, Host, run_script, understood
from jlremote.place.host.shell_text import command_line, wait_while
from jlremote.place.runtimes.docker.docker_commands import inspect_argv, state_argv
from jlremote.place.runtimes.engine.engine_errors import EngineMissing, engine_error
from jlremote.place.runtimes.engine.kinds import Engine
from jlremote.place.runtimes.runtime import CREATOR_LABEL
from jlremote.place.runtimes.scripts import packages
from jlremote.place.runtimes.table import AUTO, runtime_of
from jlremote.selection import session_selection
from jlremote.untrusted import document

SAVE_SECONDS = 3600.0


@dataclass(frozen=True)
class SaveReport:
    """An image that was saved from a container."""

    host: str
    image: str
    id: str
    size: int  # bytes, with those of the image that the container was created from
    outside: tuple[str, ...]  # its mounts, which are not in the image, each with its kind
    variables: tuple[str, ...]  # names of the container's own variables, which are in the image


def images(
    host: str, context: Context, *, every: bool = False, engine: EngineChoice = ANY_ENGINE
) -> list[Image]:
    """Return a host's images, latest first; `every`: also unnamed ones (`JlrError`: no engine)."""
    with context.progress.step(f"List the images of {host}"):
        link = link_on(host, context)
        if engine.runtime in IMAGE_RUNTIMES:
            return image_files.listed(link, engine.image_folder)
        files = image_files.listed(link, engine.image_folder) if engine.runtime == AUTO else []
        try:
            used = engine_on(link, engine)
        except EngineMissing as missing:
            if files:
                return files
            missing.hint = image_files.way(link) or missing.hint
            raise
        listed = run_script(link, image_commands.list_script(used, every=every))
    # An image that is removed meanwhile makes the command fail; the others are printed.
    if listed.status != 0 and "no such image" not in listed.stderr.lower():
        raise engine_error(used, listed)
    if files:
        ways = f"`jlr image list {host} --runtime {IMAGE_RUNTIMES[0]}` lists"
        context.progress.note(f"{ways} those that are files: {len(files)}")
    return image_commands.read_list(listed.stdout, every=every)


def save(selector: str | None, image: str, context: Context) -> SaveReport:
    """Save a session's container with all installed in it (`NotFound`; `Usage`; `JlrError`)."""
    image_names.parse_new(image)
    record = session_selection.chosen(selector, context)
    engine, host = runtime_of(record).engine, link_of(record, context)
    if engine is None:
        raise Usage(f"cannot save `{record.selector}`: it has no container")
    with context.progress.step(f"Inspect {record.name}"):
        inspected, base = _inspected(host, engine, record)
    with context.progress.step(f"Save {record.name} as {image}"):
        folders = _shared(host, engine, record, image, (inspected, base))
        shared = image_commands.with_folders(inspected, folders)
        # Under a temporary name first: an interrupt then leaves the old image of that name.
        made = f"jlr-saving-{secrets.token_hex(8)}"
        container = record.engine_name
        commit = image_commands.commit_argv(engine, container, made, inspected, base, shared)
        steps = f"{command_line(commit)} && {command_line(engine('tag', made, image))}"
        untag = command_line(engine("rmi", made))
        script = moved_aside(engine, container, steps, untag)
        done = run_script(host, script, timeout=SAVE_SECONDS)
        if done.status in (NOT_ASIDE, LEFT_THERE):
            raise _secret_would_be_in_it(engine, record, done)
        if done.status != 0:
            raise commit_error(engine, record.name, image, record.host, done)
        saved = image_commands.image_on(host, engine, image)
    outside = image_commands.outside_image(inspected)
    variables = image_commands.added_variables(inspected, base)
    return SaveReport(record.host, image, saved.id, saved.size, outside, variables)


def _secret_would_be_in_it(engine: Engine, record: SessionRecord, failed: Completed) -> JlrError:
    message = f"cannot save `{record.name}`"
    if failed.status == LEFT_THERE:
        start = engine.shown("start", record.name)
        hint = f"`{start}` there starts it; jlr keeps the secret out of the image of a running one"
        what = f"{message}: a secret of Jupyter would be in the image: {failed.complaint}"
        return JlrError(what, hint=hint)
    memory = engine.shown("exec", record.name, "df", "/dev/shm")  # noqa: S108
    return JlrError(
        f"{message}: Jupyter's token and keys would be in the image, because they cannot be moved "
        f"into the container's memory: {failed.complaint}",
        hint=f"`{memory}` shows whether it is full or read-only; "
        f"`jlr stop {record.host}/{record.name}` deletes them, and then it can be saved",
    )


@understood("the container engine")
def _shared(
    host: Host,
    engine: Engine,
    record: SessionRecord,
    image: str,
    facts: tuple[dict[str, Any], dict[str, Any]],
) -> list[str]:
    inspected, base = facts
    state, labels = inspected.get("State") or {}, inspected["Config"].get("Labels") or {}
    if not state.get("Running") or state.get("Paused") or not labels.get(CREATOR_LABEL):
        return []
    fresh = packages.SHARED not in str((base.get("Config") or {}).get("Env"))
    sharing = packages.share(engine, record.engine_name, fresh=fresh)
    done = run_script(host, sharing, timeout=SAVE_SECONDS)
    if done.status != 0:
        raise commit_error(engine, record.name, image, record.host, done)
    return done.stdout.split()


@understood("the container engine")
def _inspected(
    host: Host, engine: Engine, record: SessionRecord
) -> tuple[dict[str, Any], dict[str, Any]]:
    inspect = command_line(inspect_argv(engine, record.engine_name))
    its_image = engine("container", "inspect", "--format", "{{.Image}}", record.engine_name)
    inspect_image = f'{engine.shown("image", "inspect")} "$({command_line(its_image)})"'
    answers = host.run({"container": inspect, "image": inspect_image})
    found = answers["container"]
    if found.status != 0 and "no such container" in found.stderr.lower():
        missing = f"there is no container `{record.name}` on `{record.host}`"
        raise NotFound(missing, hint="`jlr list` shows the sessions")
    if found.status != 0:
        raise engine_error(engine, found)
    (container,) = document(found.stdout)
    # The image may be gone, as after `docker rmi --force`.
    (image,) = document(answers["image"].stdout) if answers["image"].status == 0 else ({},)
    return container, image


# Tokens, the cookie secret and the kernels' keys are in Jupyter's runtime files, which it does not
# hold open. While an image is made they are in the container's memory, which is part of no image.
# Each user's process moves only that user's files: one of root would follow links of other users.
NOT_ASIDE = 77  # sysexits.h: EX_NOPERM
LEFT_THERE = 78
# A hostile image chooses what is printed, for ever if it likes.
_MOST_BYTES, _MOST_OWNERS = 1 << 16, 16
_ALL = "all"  # the last line, without which something is missing

# A mounted folder is not in the image.
_EACH = f"""\
mounted() {{
  while read -r _ _ _ _ point _; do
    case $point in /) ;; *) case $1/ in "$point"/*) return 0;; esac;; esac
  done </proc/self/mountinfo
  return 1
}}
for folder in /tmp/jlr-[0-9]*/*/runtime {" ".join(FOREIGN_FOLDERS)} {TOLD_FOLDERS}; do
  [ -d "$folder" ] || continue
  folder=$(cd -P "$folder" 2>/dev/null && pwd || printf '%s\\n' "$folder")
  ! mounted "$folder" || continue
  DO
done
"""
_EMPTY = '[ -z "$(ls -A "$folder")" ]'
_TELL = '(set -- $(ls -ldn "$folder"); printf "%s %s\\n" "$3" "$folder")'
# Each prints owners with their folders. Without capabilities not even root can read all folders;
# then their owners see to those.
_TO_MOVE = _EACH.replace("DO", f'[ -r "$folder" ] && {_EMPTY} || {_TELL}') + f"echo {_ALL}\n"
_LEFT = _EACH.replace("DO", f'[ ! -r "$folder" ] || {_EMPTY} || {_TELL}') + f"echo {_ALL}\n"

_ASIDE = 'umask 077; mkdir "$aside" || exit; count=0\n' + _EACH.replace(
    "DO",
    """\
[ -O "$folder" ] || continue
  count=$((count + 1)) part=$aside/part
  mkdir -p "$part" && cp -pR "$folder" "$part/files" && printf '%s\\n' "$folder" >"$part/folder" &&
    mv "$part" "$aside/$count" || { rm -rf "$part"; exit 1; }
  rm -rf "$folder"/* "$folder"/.[!.]* || exit""",
)
_BACK = """\
[ -d "$aside" ] || exit 0
for kept in "$aside"/[0-9]*; do
  [ ! -d "$kept" ] || { read -r folder <"$kept/folder" &&
    cp -pR "$kept/files/." "$folder/" && rm -rf "$kept"; } || exit
done
rm -rf "$aside"
"""


def moved_aside(engine: Engine, name: str, command: str, afterwards: str) -> str:
    """Return the script that runs a command while a container's runtime files are in its memory.

    It fails with `NOT_ASIDE`, without the command, if they cannot be moved, and with `LEFT_THERE`,
    the file on stderr, if a cookie secret of another server is in a container that does not run.
    Docker finishes a commit although its client was interrupted, and the container is paused until
    then. So the script ends at once, and moves the files back when the container goes on, for up to
    `SAVE_SECONDS`; then it runs `afterwards`.
    """

    def inside(script: str, *options: str) -> str:
        return command_line(engine("exec", *options, name, "sh", "-c", script))

    def by_owner(script: str) -> str:
        return inside(place + script, "--user=OWNER").replace("--user=OWNER", '--user="$owner"')

    # A random name, because containers may share that memory with each other and the host.
    place = f"aside=/dev/shm/jlr-{secrets.token_hex(8)}-$(id -u)\n"
    running = command_line(state_argv(engine, name, "Running"))
    paused = f'[ "$({command_line(state_argv(engine, name, "Paused"))})" = true ]'
    changes = command_line(engine("container", "diff", name))
    meanwhile = f"{paused} || {{ back; break; }}"
    waiting = wait_while("! back", SAVE_SECONDS, every=1, meanwhile=meanwhile)
    return f"""\
owners=
listed() {{ head -c {_MOST_BYTES}; }}
aside() {{
  folders=$({inside(_TO_MOVE)} | listed; {inside(_TO_MOVE, "--user=0")} | listed)
  case $folders in *{_ALL}*{_ALL}) ;; *) return 1;; esac
  owners=$(printf '%s\\n' "$folders" | grep -o '^[0-9]\\{{1,10\\}} ' | sort -u |
    head -n {_MOST_OWNERS})
  for owner in $owners; do {by_owner(_ASIDE)} || return; done
  left=$({inside(_LEFT)} | listed; {inside(_LEFT, "--user=0")} | listed)
  [ "$left" = "$(printf '{_ALL}\\n{_ALL}')" ] ||
    {{ printf 'they remain: %s\\n' "$left" >&2; return 1; }}
}} </dev/null >/dev/null
back() {{ for owner in $owners; do {by_owner(_BACK)} || return; done; }}
finish() {{
  trap "" HUP INT TERM PIPE
  {waiting}
  {afterwards}
}} </dev/null >/dev/null 2>&1
trap finish EXIT; trap : PIPE; trap 'exit 129' HUP; trap 'exit 130' INT; trap 'exit 143' TERM
case $({running}) in
true) aside || exit {NOT_ASIDE};;
*)
  changed=$({changes}) || exit
  left=$(printf '%s\\n' "$changed" | grep '^[AC] .*_cookie_secret$' | grep -v '^. /tmp/jlr-[0-9]')
  [ -z "$left" ] || {{ printf '%s\\n' "$left" | cut -c3- >&2; exit {LEFT_THERE}; }};;
esac
{command}
"""
