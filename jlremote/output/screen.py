"""The terminal that a cell's streams are written for: lines that are overwritten, and colours."""

from __future__ import annotations

import re

from jlremote.text import begun_sequence, without_controls
from jlremote.untrusted import count

REACH = 64  # the lines above the cursor's that it can move to
_STYLES = 16  # sequences that make a style together
_PIECE = 4096
_RESET = "\x1b[0m"

# The colours; the cursor's steps up and down, its column, the erased line; CR and backspace.
_KEPT = re.compile(r"\x1b\[[0-9;:]{0,40}[mABGK]|[\r\b]")
_TOKEN = re.compile(r"\x1b\[([0-9;:]{0,40})([mABGK])|(\r)|(\x08+)")
_CONTROL = re.compile(r"[\n\b\r]")

_Line = list[str]  # pieces of text, and sequences of colours


class LineScreen:
    """Lines of text, of which each is overwritten as a whole."""

    def __init__(self) -> None:
        self.moved_up = False  # whether the cursor was ever moved to a line above
        self._topmost: int | None = None
        self._above: list[str] = []  # the lines beyond its reach
        self._lines: list[_Line] = [[]]
        self._row = 0
        self._at_begin = False  # whether the next text takes the place of the line
        self._style = ""
        self._held = ""  # the beginning of a sequence

    @property
    def row(self) -> int:
        """The number of the cursor's line, from 0."""
        return len(self._above) + self._row

    def topmost(self) -> int | None:
        """Return the topmost line that the cursor moved up to since the last call."""
        topmost, self._topmost = self._topmost, None
        return topmost

    def lines(self, begin: int = 0, end: int | None = None) -> list[str]:
        """Return lines, with no sequences but colours, each of which ends with its line."""
        here = len(self._above)
        end = here + len(self._lines) if end is None else end
        reached = self._lines[max(0, begin - here) : max(0, end - here)]
        return self._above[begin:end] + [_drawn(line) for line in reached]

    def write(self, text: str) -> None:
        """Write text at the cursor; a sequence may come in several pieces."""
        text = self._held + text
        self._held = begun_sequence(text)
        text = without_controls(text.removesuffix(self._held), _KEPT)
        at = 0
        for token in _TOKEN.finditer(text):
            self._put(text[at : token.start()])
            at = token.end()
            parameters, kind, carriage_return, backspaces = token.groups()
            if backspaces:
                self._remove(len(backspaces))
            elif carriage_return or kind == "G":
                self._at_begin = True
            elif kind == "m":
                self._colour(token[0], parameters)
            else:
                self._move(kind, count(parameters) or 0)
        self._put(text[at:])

    def _put(self, text: str) -> None:
        first, *more = text.split("\n")
        self._append(first)
        for line in more:
            self._row, self._at_begin = self._row + 1, True
            if self._row == len(self._lines):
                self._lines.append([])
            self._append(line)
        beyond = max(0, self._row - REACH)
        self._above += map(_drawn, self._lines[:beyond])
        del self._lines[:beyond]
        self._row -= beyond

    def _append(self, text: str) -> None:
        if not text:
            return
        if self._at_begin:
            self._lines[self._row] = [self._style] if self._style else []
            self._at_begin = False
        pieces = (text[at : at + _PIECE] for at in range(0, len(text), _PIECE))
        self._lines[self._row] += pieces

    def _remove(self, signs: int) -> None:
        line = self._lines[self._row]
        while signs and line and line[-1][:1] != "\x1b" and not self._at_begin:
            last = line.pop()
            if len(last) > signs:
                line.append(last[:-signs])
            signs -= min(signs, len(last))

    def _colour(self, sequence: str, parameters: str) -> None:
        self._style = _styled(self._style, parameters)
        if not self._at_begin:
            self._lines[self._row].append(sequence)

    def _move(self, kind: str, number: int) -> None:
        if kind == "A":
            self.moved_up = True
            self._row = max(0, self._row - max(1, number))
            self._topmost = self.row if self._topmost is None else min(self._topmost, self.row)
        elif kind == "B":
            self._row = min(len(self._lines) - 1, self._row + max(1, number))
        elif number == 2 or (number == 0 and self._at_begin):
            self._lines[self._row] = []


def _styled(style: str, parameters: str) -> str:
    """Return a style after one more sequence of colours; `0` and nothing begin anew."""
    sequences = [*style.split("m")[:-1], f"\x1b[{parameters}"]
    if re.fullmatch(r"[0;]*", parameters):
        return ""
    if re.match(r"0+;", parameters):
        sequences = sequences[-1:]
    return "".join(f"{sequence}m" for sequence in sequences[-_STYLES:])


def _drawn(line: _Line) -> str:
    colours = [piece for piece in line if piece[:1] == "\x1b"]
    is_open = bool(colours) and not re.fullmatch(r"\x1b\[[0;]*m", colours[-1])
    return "".join(line) + (_RESET if is_open else "")


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
    for control in _CONTROL.finditer(f"{text}\n"):
        piece = text[begin : control.start()]
        line[at : at + len(piece)] = piece
        at, begin = at + len(piece), control.end()
        if control[0] == "\b" and at:
            at -= 1
            del line[at]
        elif control[0] == "\r":
            at = 0
        elif control[0] == "\n":
            above.append("".join(line))
            line, at = [], 0
    return "\n".join(above)
