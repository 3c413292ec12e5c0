"""Jupyter's runtime files, kept out of a container's image, as text for `sh`.

Tokens, the cookie secret and the kernels' keys are in files, which Jupyter does not hold open.
While an image is made they are in the container's memory, which is part of no image. Each user's
process moves only that user's files, because a process of root would follow links of other users.
"""

from __future__ import annotations

import secrets

from jlremote.jupyter.scripts import FOREIGN_FOLDERS, TOLD_FOLDERS
from jlremote.place.host.shell_text import command_line, wait_while
from jlremote.place.runtimes.docker.docker_commands import state_argv
from jlremote.place.runtimes.engine.kinds import Engine

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


def moved_aside(engine: Engine, name: str, command: str, afterwards: str, limit: float) -> str:
    """Return the script that runs a command while a container's runtime files are in its memory.

    It fails with `NOT_ASIDE`, without the command, if they cannot be moved, and with `LEFT_THERE`,
    the file on stderr, if a cookie secret of another server is in a container that does not run.
    Docker finishes a commit although its client was interrupted, and the container is paused until
    then. So the script ends at once, and moves the files back when the container goes on, for up to
    `limit` seconds; then it runs `afterwards`.
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
    waiting = wait_while("! back", limit, every=1, meanwhile=f"{paused} || {{ back; break; }}")
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
