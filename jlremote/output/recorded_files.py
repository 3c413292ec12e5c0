"""The script that prints the recorder's files, and what it prints taken apart.

A file is known by its inode, as an older piece may have got another name meanwhile. Only whole
lines count as read: after a loss of the connection the next script goes on behind the last one.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from jlremote.place.host.shell_text import pause, until_hang_up
from jlremote.text import one_line
from jlremote.untrusted import Refused, count, document, moment

FOLDER = "output"  # in the session's folder
MISSING, OFF = 6, 7  # the exit status where there is none, and where recording was refused
POLL_SECONDS = 0.5
NEWS_SECONDS = 5.0
_NEWS = '"kind":"(code|end|kernel)"'
_LAST = 400  # lines of a look

# JSON has it in no line. A mark begins the bytes of a file, or stands alone for the end of a look.
_MARK = b"\x1e"


def script(directory: str, reader: Reader, *, follow: bool = False, end_only: bool = False) -> str:
    """Return the script that prints what `reader` has not read, and later lines with `follow`.

    With `end_only` it is the end of what each kernel said. `directory` is the shell text that sets
    `$directory` to the session's folder.
    """
    look = until_hang_up(_FOLLOW) if follow else _LOOK
    if end_only:
        begin = "      printf"
        look = look.replace(begin, _LAST_PIECES + begin)
    return f'{directory}{_ENTER}seen="{reader.seen}"\n{look}'


def news(directory: str) -> str:
    """Return the script that prints the last beginnings and ends of runs, and later ones.

    They come with what happened to kernels.
    """
    read = "tail -c +$((at + 1)) | head -c $((size - at))"
    look = _LOOK.replace(read, f"{read} | grep -aE '{_NEWS}' | tail -n {_LAST}")
    again = until_hang_up(f"while :; do\n{look}{pause(NEWS_SECONDS)}\ndone")
    return f'{directory}{_ENTER}seen=" "\n{again}'


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
while :; do
  now=$(ls -lin)
  [ "$now" = "$before" ] || {{
{_LOOK}}}
  before=$now
  {pause(POLL_SECONDS)}
done"""

# Prints the names of notebooks in the first lines of each file, and the last ones.
NAMES = f"""\
cd "$directory/{FOLDER}" 2>/dev/null || exit {MISSING}
for file in *.jsonl; do
  head -n 200 "$file"; tail -n 20 "$file"
done 2>/dev/null | cut -c -4000 | grep -o '"notebook":"[^"]*"' | sort -u
"""


def notebook(path: str) -> str:
    """Return the script that prints when a notebook was saved last, and then its file."""
    file = shlex.quote(f"./{path}")
    return f"""\
root=$(cat "$directory/{FOLDER}/root") || exit {MISSING}
cd "$root" && date -r {file} +%s && cat {file}
"""


def names(printed: str) -> list[str]:
    """Return the names that the script printed."""
    found = []
    for line in printed.splitlines():
        with suppress(ValueError, LookupError):
            found.append(str(document(f"{{{line}}}")["notebook"]))
    return [name for name in found if name == one_line(name)]


class Reader:
    """The bytes of the script as records."""

    def __init__(self) -> None:
        self._read: dict[int, int] = {}  # by inode the bytes of its whole lines
        self._begun: dict[int, bytearray] = {}  # by inode the beginning of a line
        self._inode: int | None = None
        self._header: bytes | None = None  # as far as it has come
        self.skipped = 0  # lines that were no records
        self.left_out = 0  # bytes of older pieces

    @property
    def seen(self) -> str:
        """What was read, as the script's variable has it."""
        return " " + "".join(f"{inode}:{read} " for inode, read in self._read.items())

    def again(self) -> None:
        """Forget what came of lines that were not whole; the next script prints them again."""
        self._begun.clear()
        self._inode = self._header = None

    def take(self, data: bytes) -> Iterator[Record | None]:
        """Yield the records in the next bytes, and `None` at the end of each look."""
        text, *marked = data.split(_MARK)
        if self._header is not None:
            text = self._headed(self._header + text)
            if self._inode is None and self._header is None:
                yield None
        yield from self._lines(text)
        for piece in marked:
            text = self._headed(piece)
            if self._inode is None and self._header is None:
                yield None
            yield from self._lines(text)

    def _headed(self, piece: bytes) -> bytes:
        """Take what follows a mark: the header's line; return the rest."""
        header, newline, rest = piece.partition(b"\n")
        if not newline:
            self._header, self._inode = header[:64], None
            return b""
        self._header = self._inode = None
        inode, _, at = header.partition(b" ")
        number, begin = (count(word.decode("ascii", "replace")) for word in (inode, at))
        if number is not None and begin is not None:
            self._inode = number
            if number not in self._read:
                self.left_out += begin
            self._read.setdefault(number, begin)
            if begin == 0:
                self._read[self._inode] = 0
        return rest

    def _lines(self, text: bytes) -> Iterator[Record]:
        if self._inode is None or not text:
            return
        held = self._begun.setdefault(self._inode, bytearray())
        held += text
        if b"\n" in text:
            *whole, rest = held.split(b"\n")
            self._begun[self._inode] = held = rest
            for line in whole:
                self._read[self._inode] += len(line) + 1
                if (record := parsed(bytes(line))) is not None:
                    yield record
                elif line.strip():
                    self.skipped += 1
        if len(held) > MOST_BYTES:
            self._read[self._inode] += len(held)
            held.clear()


MOST_BYTES = 64 << 20  # of one line: a picture is a line, too

KINDS = frozenset(
    {
        *("code", "stream", "display_data", "execute_result", "error", "update_display_data"),
        *("clear_output", "end", "kernel", "lost"),
    }
)


@dataclass(frozen=True)
class Record:
    """A line: something that a kernel said, or that happened to it or to the recorder."""

    time: float  # seconds since the epoch, by the clock of the host
    kernel: str
    kind: str
    notebook: str | None = None  # path below the server's root
    cell: str | None = None
    request: str | None = None  # the id of the request to run the cell
    content: dict[str, Any] = field(default_factory=dict)

    def text(self, name: str) -> str:
        """Return a part of the content that should be text, `""` where it is not."""
        value = self.content.get(name)
        return value if isinstance(value, str) else ""


def parsed(line: bytes) -> Record | None:
    """Return the record in a line, `None` if it is torn or no record."""
    if len(line) > MOST_BYTES:
        return None
    try:
        told = document(line)
    except Refused:
        return None
    if not isinstance(told, dict):
        return None
    kind, content = told.get("kind"), told.get("content")
    time, kernel = moment(told.get("time")), told.get("kernel")
    if not isinstance(kind, str) or kind not in KINDS:
        return None
    if time is None or not isinstance(kernel, str):
        return None
    names = {name: _name(told.get(name)) for name in ("notebook", "cell", "request")}
    content = content if isinstance(content, dict) else {}
    return Record(time, kernel, kind, **names, content=content)


def _name(value: object) -> str | None:
    return value if isinstance(value, str) and value else None
