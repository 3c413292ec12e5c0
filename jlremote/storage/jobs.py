"""The laptop's records of its jobs: only where they are, for all else is asked there."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from pathlib import Path

from jlremote.storage import records


@dataclass(frozen=True)
class JobRecord:
    """What the laptop remembers of a job.

    Attributes:
        host: what was typed after `ssh`.
        name: the job's.
        runtime: name of the runtime.
        ssh_config: ssh's `-F`.
        typed: what a person calls it, where a house's rule made another name of that.
        began: seconds since the epoch.
    """

    host: str
    name: str
    runtime: str
    ssh_config: str | None
    typed: str | None = None
    began: float = field(default_factory=time.time)


def save(record: JobRecord) -> None:
    """Write a record, whole.

    Raises:
        JlrError: it cannot be written.
    """
    records.save(_file(record.host, record.name), record)


def delete(host: str, name: str) -> None:
    """Forget a job; twice is fine."""
    _file(host, name).unlink(missing_ok=True)


def load_all() -> list[JobRecord]:
    """Return all records, the latest first; what is no record of ours is passed over."""
    found = records.load_all(records.folder("jobs"), JobRecord)
    return sorted(found, key=lambda record: -record.began)


def _file(host: str, name: str) -> Path:
    return records.folder("jobs") / records.file_name(host, name)
