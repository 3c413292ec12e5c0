"""The recorder's files of a session: the scripts that print them, and their lines as records.

A file is known by its inode, as an older piece may have got another name meanwhile. Only whole
lines count as read: after a loss of the connection the next script goes on behind the last one.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from jlremote.place.host.shell_text import again_until_hang_up
from jlremote.untrusted import Refused, count, document, moment

FOLDER = "output"  # in the session's folder
MISSING, OFF = 6, 7  # the exit status where there is none, and where recording was refused
POLL_SECONDS = 0.5
NEWS_SECONDS = 5.0
MOST_BYTES = 64 << 20  # of one line: a picture is a line, too
KINDS = frozenset(
    {
        *("code", "stream", "display_data", "execute_result", "error", "update_display_data"),
        *("clear_output", "end", "kernel", "lost"),
    }
)
_NEWS = '"kind":"(code|end|kernel)"'
_LAST = 400  # lines of a look

# JSON has it in no line. A mark begins the bytes of a file, or stands alone for the end of a look.
_MARK = b"\x1e"


@dataclass(frozen=True)
class Record:
    """A line of the recorder: a message or an event of a kernel, or a loss."""

    time: float  # seconds since the epoch, by the clock of the host
    kernel: str
    kind: str
    notebook: str | None = None  # path below the server's root
    cell: str | None = None
    request: str | None = None  # the id of the request to run the cell
    content: dict[str, Any] = field(default_factory=dict)
    widget: str | None = None  # the Output widget that gets it

    def text(self, name: str) -> str:
        """Return a part of the content that should be text, `""` where it is not."""
        value = self.content.get(name)
        return value if isinstance(value, str) else ""


def parsed(line: bytes) -> Record | None:
    """Return the record in a line, `None` if it is torn or no record."""
    if len(line) > MOST_BYTES:
        return None
    try:
        fields = document(line)
    except Refused:
        return None
    if not isinstance(fields, dict):
        return None
    time, content = moment(fields.get("time")), fields.get("content")
    names = {name: text for name, text in fields.items() if isinstance(text, str) and text}
    kernel, kind = fields.get("kernel"), names.get("kind")
    if kind not in KINDS or time is None or not isinstance(kernel, str):
        return None
    of = {name: names.get(name) for name in ("notebook", "cell", "request", "widget")}
    return Record(time, kernel, kind, **of, content=content if isinstance(content, dict) else {})


class Reader:
    """A reader that makes records of the bytes that the script prints."""

    def __init__(self) -> None:
        self._read: dict[int, int] = {}  # by inode the bytes of its whole lines
        self._torn: dict[int, bytes] = {}  # by inode the beginning of a line
        self._line = bytearray()  # as far as it has come
        self._inode: int | None = None
        self.left_out = 0  # bytes of older pieces

    @property
    def seen(self) -> str:
        """The bytes that were read of each file, for the script's variable `seen`."""
        return " " + "".join(f"{inode}:{read} " for inode, read in self._read.items())

    def again(self) -> None:
        """Forget half lines, which the next script prints again."""
        self._torn.clear()
        self._line.clear()
        self._inode = None

    def take(self, data: bytes) -> Iterator[Record | None]:
        """Yield the records in the next bytes, and `None` at the end of each look."""
        self._line += data
        if b"\n" in data:
            *lines, rest = self._line.split(b"\n")
            self._line = rest
            for line in lines:
                text, mark, header = bytes(line).rpartition(_MARK)
                if mark and self._begin(text, header):
                    yield None
                elif not mark and (record := self._record(header)):
                    yield record
        if len(self._line) > MOST_BYTES and self._inode is not None:
            self._read[self._inode] += len(self._line)
            self._line.clear()

    def _begin(self, torn: bytes, header: bytes) -> bool:
        if self._inode is not None and torn:
            self._torn[self._inode] = self._torn.pop(self._inode, b"") + torn
        inode, _, at = header.decode("ascii", "replace").partition(" ")
        self._inode, begin = count(inode), count(at)
        if self._inode is None or begin is None:
            self._inode = None
            return True
        if self._inode not in self._read:
            self.left_out += begin
        if begin == 0 or self._inode not in self._read:
            self._read[self._inode] = begin
        return False

    def _record(self, line: bytes) -> Record | None:
        if self._inode is None:
            return None
        line = self._torn.pop(self._inode, b"") + line
        self._read[self._inode] += len(line) + 1
        return parsed(line)


def script(directory: str, reader: Reader, *, follow: bool = False, end_only: bool = False) -> str:
    """Return the script that prints what `reader` has not read, and later lines with `follow`.

    With `end_only` it is the end of what each kernel said. `directory` is the shell text that sets
    `$directory` to the session's folder.
    """
    look = again_until_hang_up(_FOLLOW, POLL_SECONDS) if follow else _LOOK
    if end_only:
        begin = "      printf"
        look = look.replace(begin, _LAST_PIECES + begin)
    return f'{directory}{_ENTER}seen="{reader.seen}"\n{look}'


def news(directory: str) -> str:
    """Return the script that prints the last beginnings and ends of runs, and later ones."""
    read = "tail -c +$((at + 1)) | head -c $((size - at))"
    look = _LOOK.replace(read, f"{read} | grep -aE '{_NEWS}' | tail -n {_LAST}")
    again = again_until_hang_up(look, NEWS_SECONDS)
    return f'{directory}{_ENTER}seen=" "\n{again}'


def notebook(path: str) -> str:
    """Return the script that prints when a notebook was saved last, and then its file."""
    file = shlex.quote(f"./{path}")
    return f"""\
root=$(cat "$directory/{FOLDER}/root") || exit {MISSING}
cd "$root" && date -r {file} +%s && cat {file}
"""


_ENTER = f"""\
cd "$directory/{FOLDER}" 2>/dev/null || {{
  {{ read -r own <"$directory/recorder"; }} 2>/dev/null
  [ "$own" != off ] || exit {OFF}
  exit {MISSING}
}}
"""
# Of a kernel's older pieces only the last one is told. No record is cut.
_LAST_PIECES = """\
      piece=${file%.jsonl}
      case ${piece##*.} in
        "$piece" | *[!0-9]*) ;;
        *) [ ! -e "${piece%.*}.$((${piece##*.} + 1)).jsonl" ] || at=$size;;
      esac
"""
# The oldest first. The descriptor's file is asked for its size, as its name may be that of another
# file a moment later.
_LOOK = r"""
while read -r file; do
  [ -f "$file" ] && {
    set -- $(LC_ALL=C ls -Lin /proc/self/fd/0)
    inode=$1 size=$6 at=0
    case $seen in *" $inode:"*) at=${seen#*" $inode:"}; at=${at%% *};; esac
    [ "$size" -ge "$at" ] || at=0
    if [ "$size" -gt "$at" ]; then
      printf '\036%s %s\n' "$inode" "$at"
      tail -c +$((at + 1)) | head -c $((size - at))
      case $seen in *" $inode:"*) seen=${seen%%" $inode:"*}" "${seen#*" $inode:"*" "};; esac
      seen="$seen$inode:$size "
    fi
  } <"$file"
done <<END
$(ls -tr | grep '\.jsonl$')
END
printf '\036\n'
"""
# Only what has changed is looked at, which would start programs for each file.
_FOLLOW = f"""\
now=$(ls -lin)
[ "$now" = "$before" ] || {{
{_LOOK}}}
before=$now"""
