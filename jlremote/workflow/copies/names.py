"""The sources and the target of a copy, as they are typed."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from jlremote.errors import Usage

_PATTERN = frozenset("*?[")


@dataclass(frozen=True)
class RemotePath:
    """A path of a session, container or host."""

    where: str  # a session, `HOST/CONTAINER` or `HOST`
    path: str  # relative to the folder in which shells begin there, or absolute

    @property
    def is_pattern(self) -> bool:
        return bool(_PATTERN & set(self.path))


def parsed(text: str) -> Path | RemotePath:
    """Return a path of this machine, or of another: `WHERE:PATH`, with the colon before a slash.

    `./a:b` is a file of this machine; so is a path with a drive's letter on Windows.
    """
    where, colon, path = text.partition(":")
    is_drive = os.name == "nt" and len(where) == 1
    if not colon or is_drive or not where or where[0] in "./~":
        return Path(text).expanduser()
    if where.count("/") > 1:
        return Path(text)
    return RemotePath(where, path or ".")


def one_place(sources: list[RemotePath]) -> str:
    """Return where all remote sources are.

    Raises:
        Usage: they are in several places.
    """
    places = {source.where for source in sources}
    if len(places) > 1:
        raise Usage(
            f"sources in several places: {', '.join(f'`{place}`' for place in sorted(places))}",
            hint="copy from each with a command of its own",
        )
    return places.pop()
