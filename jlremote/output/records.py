"""The lines of a recorder's files."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from jlremote.untrusted import Refused, document, moment

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
