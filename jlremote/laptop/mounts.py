"""Records of mounts: the folder, where it is mounted, and over which link."""

from __future__ import annotations

import contextlib
import hashlib
import os
from dataclasses import dataclass
from pathlib import Path

from jlremote.laptop import paths
from jlremote.laptop.records import NAMES, Records


@dataclass(frozen=True)
class MountRecord:
    """The laptop's record of a mount."""

    local: str  # absolute path of the folder here
    remote: str  # absolute path of the folder on the host
    host: str  # what was typed after `ssh`
    session: str  # empty for a folder that was named by its host
    ssh_config: str | None  # ssh's `-F` of the link that it goes over
    read_only: bool
    made: int  # how many folders jlr made, the local one and parents; they go with the mount

    @property
    def name(self) -> str:
        """The name in the link: a hash, so that it is short and safe on a command line."""
        return hashlib.sha256(os.fsencode(self.local)).hexdigest()[:16]


_RECORDS = Records("mounts", MountRecord, ("name",), host=NAMES["host"])
save, delete = _RECORDS.save, _RECORDS.delete


def load_all() -> list[MountRecord]:
    """Return all records, by their local path."""
    return sorted(_RECORDS.load_all(), key=lambda record: record.local)


def is_news(text: str) -> bool:
    """Return whether a text differs from that of the last call, also by an earlier command."""
    told = _RECORDS.folder() / "told"
    with contextlib.suppress(OSError, ValueError):
        if told.read_text("utf-8") == text:
            return False
    paths.write_whole(told, text)
    return True


def lock() -> Path:
    """Return the file that is locked while folders are mounted or unmounted."""
    return _RECORDS.folder() / "lock"
