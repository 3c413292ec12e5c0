"""The laptop's records of its jobs: only where they are, for all else is asked there."""

from __future__ import annotations

import json
import time
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, get_type_hints
from urllib.parse import quote

from jlremote.storage import paths

FORMAT = 1


@dataclass(frozen=True)
class JobRecord:
    """What the laptop remembers of a job.

    Attributes:
        host: what was typed after `ssh`.
        name: the job's.
        runtime: name of the runtime.
        ssh_config: ssh's `-F`.
        began: seconds since the epoch.
    """

    host: str
    name: str
    runtime: str
    ssh_config: str | None
    began: float = field(default_factory=time.time)


def _folder() -> Path:
    return paths.private_directory(paths.state_directory() / "jobs")


def _file(host: str, name: str) -> Path:
    return _folder() / f"{quote(host, safe='')}+{quote(name, safe='')}.json"


def save(record: JobRecord) -> None:
    """Write a record, whole.

    Raises:
        JlrError: it cannot be written.
    """
    document = {"format": FORMAT} | asdict(record)
    paths.write_whole(_file(record.host, record.name), json.dumps(document, indent=2) + "\n")


def delete(host: str, name: str) -> None:
    """Forget a job; twice is fine."""
    _file(host, name).unlink(missing_ok=True)


def load_all() -> list[JobRecord]:
    """Return all records, the latest first; what is no record of ours is passed over."""
    records = (_read(path) for path in _folder().glob("*.json"))
    return sorted((record for record in records if record), key=lambda record: -record.began)


def _read(path: Path) -> JobRecord | None:
    try:
        document = json.loads(path.read_text("utf-8"))
    except (OSError, ValueError):
        return None
    if not isinstance(document, dict) or document.pop("format", None) != FORMAT:
        return None
    return _record(document)


def _record(document: dict[str, Any]) -> JobRecord | None:
    wanted = get_type_hints(JobRecord)
    if document.keys() != wanted.keys():
        return None
    if not all(isinstance(document[key], wanted[key]) for key in wanted):
        return None
    return JobRecord(**document)
