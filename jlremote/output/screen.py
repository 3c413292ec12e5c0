"""The terminal that a cell's streams are written for: lines, a cursor, colours."""

from __future__ import annotations

import re
from collections.abc import Iterator

from jlremote.text import begun_sequence, without_controls
from jlremote.untrusted import count

REACH = 64  # the lines above the cursor's that it can move to
WIDEST = 2000  # the column that it can be moved to
_STYLES = 16  # sequences that make a style together
_RESET = "\x1b[0m"

# The colours; the cursor's steps, its column, the erased line; CR and backspace.
_KEPT = re.compile(r"\x1b\[[0-9;:]{0,40}[mABCDGK]|[\r\b]")
_MOVES = re.compile(r"[\x1b\r\b]")
_TOKEN = re.compile(r"\x1b\[([0-9;:]{0,40})([mABCDGK])|([\r\b\n])")
_CONTROL = re.compile(r"[\n\b\r]")

_Line = list[tuple[str, str]]  # of each column the character and its style


class LineScreen:
    """Lines of text as a terminal without edges shows them.

    What leaves the cursor's reach does not change any more.
    """

    def __init__(self) -> None:
        self.moved_up = False  # whether the cursor was ever moved to a line above
        self._topmost: int | None = None
        self._above: list[str] = []  # the lines beyond its reach
        self._lines: list[_Line | str] = [""]  # a string as long as it is plain
        self._row = self._column = 0
        self._style = ""
        self._held = ""  # the beginning of a sequence

    @property
    def row(self) -> int:
        """The number of the cursor's line, from 0."""
        return len(self._above) + self._row

    @property
    def height(self) -> int:
        """How many lines there are; the last one may be empty."""
        return len(self._above) + len(self._lines)

    def topmost(self) -> int | None:
        """Return the topmost line that the cursor moved up to since the last call."""
        topmost, self._topmost = self._topmost, None
        return topmost

    def lines(self, begin: int = 0, end: int | None = None) -> list[str]:
        """Return lines, with no sequences but colours, each of which ends with its line."""
        end = self.height if end is None else end
        here = len(self._above)
        drawn = [_drawn(line) for line in self._lines[max(0, begin - here) : max(0, end - here)]]
        return self._above[begin:end] + drawn

    def write(self, text: str) -> None:
        """Write text at the cursor; a sequence may come in several pieces."""
        text = self._held + text
        self._held = begun_sequence(text)
        text = without_controls(text.removesuffix(self._held), _KEPT)
        if self._append(text):
            return
        at = 0
        for found in _TOKEN.finditer(text):
            self._put(text[at : found.start()])
            at = found.end()
            if found[3]:
                self._control(found[3])
            else:
                self._sequence(found[1], found[2])
        self._put(text[at:])

    def _append(self, text: str) -> bool:
        """Put plain lines at the end of all at once, as most are; return whether it can be done."""
        last, is_plain = self._lines[-1], not self._style and not _MOVES.search(text)
        if not is_plain or not isinstance(last, str) or self._row != len(self._lines) - 1:
            return False
        if self._column != len(last) or len(last) >= max(WIDEST, 64 * len(text)):
            return False
        first, *more = text.split("\n")
        self._lines[-1:] = [last + first, *more]
        self._row, self._column = len(self._lines) - 1, len(self._lines[-1])
        self._down(0, grow=False)
        return True

    def _put(self, text: str) -> None:
        if not text:
            return
        line = self._lines[self._row]
        # A string grows in as many steps as it has signs, which is slow for long ones.
        plain = not self._style and self._column == len(line) < WIDEST
        if isinstance(line, str) and plain:
            self._lines[self._row] = line + text
        else:
            cells = self._cells()
            cells.extend([(" ", "")] * (self._column - len(cells)))
            cells[self._column : self._column + len(text)] = [(sign, self._style) for sign in text]
        self._column += len(text)

    def _cells(self) -> _Line:
        line = self._lines[self._row]
        if isinstance(line, str):
            line = self._lines[self._row] = [(sign, "") for sign in line]
        return line

    def _control(self, control: str) -> None:
        if control == "\b":
            self._column = max(0, self._column - 1)
            return
        self._column = 0
        if control == "\n":
            self._down(1, grow=True)

    def _down(self, count: int, *, grow: bool) -> None:
        self._row += count
        if grow and self._row == len(self._lines):
            self._lines.append("")
        self._row = min(self._row, len(self._lines) - 1)
        beyond = max(0, self._row - REACH)
        self._above += map(_drawn, self._lines[:beyond])
        del self._lines[:beyond]
        self._row -= beyond

    def _sequence(self, parameters: str, kind: str) -> None:
        if kind == "m":
            self._style = _styled(self._style, parameters)
            return
        number = count(parameters) or 0
        if kind == "K":
            self._erase(number)
            return
        step = max(1, min(number, WIDEST))
        if kind == "A":
            self.moved_up = True
            self._row = max(0, self._row - step)
            self._topmost = self.row if self._topmost is None else min(self._topmost, self.row)
        elif kind == "B":
            self._down(step, grow=False)
        else:
            column = {"C": self._column + step, "D": self._column - step, "G": step - 1}[kind]
            # A line that is longer already keeps its cursor.
            self._column = max(0, min(column, max(WIDEST, self._column)))

    def _erase(self, which: int) -> None:
        cells = self._cells()
        if which == 1:
            blank = min(self._column + 1, len(cells), WIDEST)
            cells[:blank] = [(" ", "")] * blank
        else:
            del cells[0 if which == 2 else self._column :]


def _styled(style: str, parameters: str) -> str:
    """Return a style after one more sequence of colours; `0` and nothing begin anew."""
    sequences = [*style.split("m")[:-1], f"\x1b[{parameters}"]
    if re.fullmatch(r"[0;]*", parameters):
        return ""
    if re.match(r"0+;", parameters):
        sequences = sequences[-1:]
    return "".join(f"{sequence}m" for sequence in sequences[-_STYLES:])


def _drawn(line: _Line | str) -> str:
    return line if isinstance(line, str) else "".join(_parts(line))


def _parts(line: _Line) -> Iterator[str]:
    current = ""
    for sign, style in line:
        if style != current:
            yield (_RESET if current else "") + style
            current = style
        yield sign
    if current:
        yield _RESET


def shown(text: str) -> list[str]:
    """Return the lines of a finished text; a newline at its end begins no further one."""
    screen = LineScreen()
    screen.write(text)
    lines = screen.lines()
    return lines if lines[-1] else lines[:-1]


def overwritten(text: str) -> str:
    """Return a stream's text as JupyterLab keeps it in a notebook, after its overwriting.

    A carriage return goes to the beginning of the line, and what follows overwrites it; a
    backspace removes the character before. A newline begins a line, also within one. Source:
    `processText` in JupyterLab 4's packages/outputarea/src/model.ts.
    """
    if "\r" not in text and "\b" not in text:
        return text
    above: list[str] = []
    line: list[str] = []
    at = begin = 0
    for found in _CONTROL.finditer(f"{text}\n"):
        piece = text[begin : found.start()]
        line[at : at + len(piece)] = piece
        at, begin = at + len(piece), found.end()
        if found[0] == "\b" and at:
            at -= 1
            del line[at]
        elif found[0] == "\r":
            at = 0
        elif found[0] == "\n":
            above.append("".join(line))
            line, at = [], 0
    return "\n".join(above)
