"""The laptop's records of its mounts: what is mounted where, and over which link."""

from __future__ import annotations

import hashlib
import os
from dataclasses import dataclass
from pathlib import Path

from jlremote.storage import records


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


def save(record: MountRecord) -> None:
    """Write a record, whole.

    Raises:
        JlrError: it cannot be written.
    """
    records.save(_file(record), record)


def delete(record: MountRecord) -> None:
    """Forget a mount; twice is fine."""
    _file(record).unlink(missing_ok=True)


def load_all() -> list[MountRecord]:
    """Return all records, by their local path; what is no record of ours is passed over."""
    found = records.load_all(records.folder("mounts"), MountRecord)
    return sorted(found, key=lambda record: record.local)


def lock() -> Path:
    """Return the file that is locked while mounts are made or undone."""
    return records.folder("mounts") / "lock"


def _file(record: MountRecord) -> Path:
    return records.folder("mounts") / f"{record.name}.json"
