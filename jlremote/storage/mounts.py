"""The laptop's records of its mounts: what is mounted where, and over which link."""

from __future__ import annotations

import hashlib
import json
import os
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, get_type_hints

from jlremote.storage import paths

FORMAT = 1


@dataclass(frozen=True)
class MountRecord:
    """What the laptop remembers of a mount.

    Attributes:
        local: absolute path of the folder here.
        remote: absolute path of the folder on the host.
        host: what was typed after `ssh`.
        session: the session's name.
        ssh_config: ssh's `-F` of the link that it goes over.
        read_only: whether nothing can be changed through it.
        made: whether the local folder was made for it, and goes with it.
    """

    local: str
    remote: str
    host: str
    session: str
    ssh_config: str | None
    read_only: bool
    made: bool

    @property
    def name(self) -> str:
        """How the link calls it: short, and without anything that a command line would mind."""
        return hashlib.sha256(os.fsencode(self.local)).hexdigest()[:16]


def _folder() -> Path:
    return paths.private_directory(paths.state_directory() / "mounts")


def _file(record: MountRecord) -> Path:
    return _folder() / f"{record.name}.json"


def save(record: MountRecord) -> None:
    """Write a record, whole.

    Raises:
        JlrError: it cannot be written.
    """
    document = {"format": FORMAT} | asdict(record)
    paths.write_whole(_file(record), json.dumps(document, indent=2) + "\n")


def delete(record: MountRecord) -> None:
    """Forget a mount; twice is fine."""
    _file(record).unlink(missing_ok=True)


def load_all() -> list[MountRecord]:
    """Return all records, by their local path; what is no record of ours is passed over."""
    records = (_read(path) for path in _folder().glob("*.json"))
    return sorted((record for record in records if record), key=lambda record: record.local)


def lock() -> Path:
    """Return the file that is locked while mounts are made or undone."""
    return _folder() / "lock"


def _read(path: Path) -> MountRecord | None:
    try:
        document = json.loads(path.read_text("utf-8"))
    except (OSError, ValueError):
        return None
    if not isinstance(document, dict) or document.pop("format", None) != FORMAT:
        return None
    return _record(document)


def _record(document: dict[str, Any]) -> MountRecord | None:
    wanted = get_type_hints(MountRecord)
    if document.keys() != wanted.keys():
        return None
    if not all(isinstance(document[key], wanted[key]) for key in wanted):
        return None
    return MountRecord(**document)
