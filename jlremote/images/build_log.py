"""The output of a build: its last lines, which have the engine's reason of a failure."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from jlremote.text import printable

KEPT_LINES = 40
LONGEST_LINE = 1 << 16  # of which the end is kept
# The image that a line of a Dockerfile builds on.
FROM = re.compile(r"^\s*FROM\s+(?:--\S+\s+)*([^\s$]+)\s*(?:AS\s.*)?$", re.IGNORECASE | re.MULTILINE)
_SENDING = "Sending build context to Docker daemon"


@dataclass
class BuildLog:
    """The output of a build so far, with its last lines."""

    lines: list[str] = field(default_factory=list)
    _begun: str = ""

    def take(self, text: str) -> str:
        """Take the next output; return the lines that are worth showing."""
        *whole, begun = (self._begun + printable(text)).split("\n")
        self._begun = begun[-LONGEST_LINE:]
        shown = [line for line in whole if not line.startswith(_SENDING)]
        self.lines = [*self.lines, *filter(str.strip, shown)][-KEPT_LINES:]
        return "".join(f"{line}\n" for line in shown)

    def finish(self) -> str:
        """Take and return the last line, even if no line break ends it."""
        return self.take("\n") if self._begun else ""
