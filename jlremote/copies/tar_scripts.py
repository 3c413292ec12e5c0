"""The far halves of a copy, as commands: the `tar` of the place reads or writes it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from jlremote.copies.exchange import Complaint
from jlremote.copies.names import RemotePath
from jlremote.errors import JlrError
from jlremote.text import one_line

_NO_TAR = 77
NOT_SO = 78  # the target is no folder
NO_FOLDER = 79  # the target's folder is missing
WHOLE = "whole"  # the last file of an archive that is sent: it has come to its end
FILES = "files"  # the folder before it
LANDED = "landed"  # printed once all has its final name: a shell that ran nothing may exit with 0

# `unseen` finds why a path cannot be looked at: `[ -e` takes that for one that is not there.
_BEGIN = f"""\
command -v tar >/dev/null 2>&1 || exit {_NO_TAR}
pack() {{ tar "-$1f" - "$2"; }}
unpack() {{ tar --no-same-permissions -xof -; }}
unpack_p() {{ tar -pxof -; }}
unseen() {{
  why=$(LC_ALL=C ls "$@" 2>&1 >/dev/null)
  case $why in
    *"No such file"* | *"ot a directory"* | *"ot found"*) why= ;;
    *) why=${{why##*: }} ;;
  esac
}}
found_at() {{
  case $1 in
    "~") begin=$HOME rest= ;;
    "~/"*) begin=$HOME/ rest=${{1#??}} ;;
    /*) begin= rest=$1 ;;
    *) begin=./ rest=$1 ;;
  esac
}}
"""
# First what there is, each with its kind, the number of its source, and a folder's size in KiB.
_FETCH = """\
why_not() {
  case $rest in
    *[*?[]*) rest=${rest%%[*?[]*}; unseen "$begin${rest%"${rest##*/}"}." ;;
    *) unseen -d "$begin$rest" ;;
  esac
  [ ! "$why" ] || printf '! %s  %s\\0' "$number" "$why"
}
recursive=$1; shift
number=0 status=0 IFS=
for typed; do
  shift
  found_at "$typed"
  if [ -e "$begin$rest" ]; then set -f; else set +f; fi
  found=
  for path in "$begin"$rest; do
    [ -e "$path" ] || continue
    found=yes kind=f size=
    if [ -d "$path" ]; then
      kind=d
      if [ "$recursive" ]; then size=$(du -sk "$path/." 2>/dev/null); fi
    fi
    set -- "$@" "$path"
    printf '%s %s %s %s\\0' "$kind" "$number" "${size%%[!0-9]*}" "${path#"$begin"}"
  done
  [ "$found" ] || why_not
  number=$((number + 1))
done
printf '\\0'
for path; do
  if [ -d "$path" ]; then (cd -- "$path" && pack c .); else
    (cd -- "${path%/*}/" && pack ch "./${path##*/}")
  fi || status=$?
done
exit "$status"
"""
# `land` gives what has arrived its final name.
_SEND = f"""\
unpack=$1 needs=$2 mark=$3 typed=$4; shift 4
land() {{
  if [ ! -d "$2" ]; then mv -f -- "$1" "$2"; return; fi
  if [ ! -d "$1" ] || [ -L "$1" ]; then echo "$2: it is a folder" >&2; return 1; fi
  for one in "$1"/* "$1"/.[!.]* "$1"/..?*; do
    if [ -e "$one" ] || [ -L "$one" ]; then (land "$one" "$2/${{one##*/}}") || return; fi
  done
}}
found_at "$typed"
path=$begin$rest
if [ -d "$path/." ]; then folder=$path; else
  case $needs$path in several* | */) exit {NOT_SO} ;; esac
  if [ "$needs" = folder ] && [ -e "$path" ]; then exit {NOT_SO}; fi
  folder=${{path%/*}}/
  if [ ! -d "$folder." ]; then
    unseen -d "$folder."
    [ "$why" ] || exit {NO_FOLDER}
    printf '%s: %s\n' "${{folder%/}}" "$why" >&2
    exit 1
  fi
fi
staging=$folder/$mark
why=$(LC_ALL=C mkdir -m 700 "$staging" 2>&1) || {{
  if [ -n "${{begin#/}}" ] && [ ! -d "$HOME/." ]; then
    why="$why; the home folder $HOME is missing"
  fi
  printf '%s: %s\n' "${{folder%/}}" "${{why##*: }}" >&2
  exit 1
}}
trap 'chmod -R u+rwx "$staging"; rm -rf "$staging"' EXIT
trap 'exit 1' HUP INT TERM
(cd -- "$staging" && "$unpack") || exit
[ -e "$staging/{WHOLE}" ] || exit 1
for name; do
  if [ "$folder" = "$path" ]; then into=$path/$name; else into=$path; fi
  land "$staging/{FILES}/$name" "$into" || exit
done
printf {LANDED}
"""


def fetch(paths: Sequence[str], *, recursive: bool) -> tuple[str, ...]:
    """Return the command that lists the files there, then sends an archive of each."""
    return ("sh", "-c", _BEGIN + _FETCH, "sh", "r" if recursive else "", *paths)


def send(
    path: str, names: Sequence[str], mark: str, needs: str, *, preserve: bool
) -> tuple[str, ...]:
    """Return the command that unpacks an archive and gives each of `names` its place.

    `mark` names the folder of what has arrived. `needs` is `several` where the target has to be a
    folder, or tells what the one name is: `folder` or `file`.
    """
    unpack = "unpack_p" if preserve else "unpack"
    return ("sh", "-c", _BEGIN + _SEND, "sh", unpack, needs, mark, path, *names)


def check(
    status: int,
    complaint: Complaint,
    sources: Sequence[Path | RemotePath],
    target: Path | RemotePath,
) -> None:
    """Raise the error of a command that failed to copy."""
    if status == _NO_TAR:
        raise JlrError("there is no `tar` there", hint="install `tar` there, then copy again")
    if status:
        what = f"`{one_line(str(sources[0]))}`" if len(sources) == 1 else f"{len(sources)} sources"
        raise JlrError(f"cannot copy {what} to `{target}`: {complaint.cause(status)}")
