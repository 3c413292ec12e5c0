"""The output of a build: the current step, and the line of the Dockerfile that fails."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from jlremote.text import one_line, printable
from jlremote.untrusted import count

KEPT_LINES = 40
LONGEST_LINE = 1 << 16  # of which the end is kept
# The image that a line of a Dockerfile builds on.
FROM = re.compile(r"^\s*FROM\s+(?:--\S+\s+)*([^\s$]+)\s*(?:AS\s.*)?$", re.IGNORECASE | re.MULTILINE)
# The classic builder and podman count instructions; BuildKit marks the failed line with `>>>`.
_STEP = re.compile(r"^Step (\d+)/\d+ ?: (.*)", re.IGNORECASE)
_SHOWN = re.compile(r"^\s*(\d+) \| >>> (.*)")
_PARSE_ERROR = re.compile(r"parse error (?:on )?line (\d+):", re.IGNORECASE)
_DIRECTIVE = re.compile(r"^#\s*(\w+)\s*=\s*(\S+)\s*$")
_SENDING = "Sending build context to Docker daemon"


@dataclass
class BuildLog:
    """The output of a build so far, with its last lines and its current step."""

    lines: list[str] = field(default_factory=list)
    _step: int = 0
    _shown: tuple[int, str] | None = None
    _begun: str = ""

    def take(self, text: str) -> str:
        """Take the next output; return the lines that are worth showing."""
        *whole, begun = (self._begun + printable(text)).split("\n")
        self._begun = begun[-LONGEST_LINE:]
        shown = [line for line in whole if not line.startswith(_SENDING)]
        for line in shown:
            self._line(line)
        return "".join(f"{line}\n" for line in shown)

    def finish(self) -> str:
        """Take and return the last line, even if no line break ends it."""
        return self.take("\n") if self._begun else ""

    def _line(self, line: str) -> None:
        if line.strip():
            self.lines = [*self.lines, line][-KEPT_LINES:]
        if step := _STEP.match(line):
            self._step = count(step[1]) or 0
        if shown := _SHOWN.match(line):
            self._shown = count(shown[1]) or 0, shown[2]

    @property
    def has_built(self) -> bool:
        """Whether a step succeeded before the one that failed."""
        return self._step > 1 or self._shown is not None

    def failed_at(self, dockerfile: str) -> tuple[int, str] | None:
        """Return number and text of the Dockerfile's line that failed, `None` if unknown."""
        for line in reversed(self.lines):
            if error := _PARSE_ERROR.search(line):
                number = count(error[1]) or 0
                return number, _line_of(dockerfile, number)
        if self._shown:
            return self._shown
        instructions = list(_instructions(dockerfile))
        if 0 < self._step <= len(instructions):
            number = instructions[self._step - 1]
            return number, _line_of(dockerfile, number)
        return None


def _line_of(dockerfile: str, number: int) -> str:
    lines = dockerfile.splitlines()
    return one_line(lines[number - 1]) if 0 < number <= len(lines) else ""


def _instructions(dockerfile: str) -> Iterator[int]:
    escape, continued, directives = "\\", False, True
    for number, line in enumerate(dockerfile.splitlines(), start=1):
        text = line.strip()
        if text.startswith("#"):
            directive = _DIRECTIVE.match(text) if directives else None
            if directive and directive[1].lower() == "escape":
                escape = directive[2]
            continue
        directives = False
        if not text:
            continue
        if not continued:
            yield number
        continued = text.endswith(escape)
