"""The session that was stopped last here, so that the next bare `jlr stop` hits no other one."""

from __future__ import annotations

import time
from dataclasses import dataclass, field

from jlremote.storage.records import NAMES, Records


@dataclass(frozen=True)
class StopRecord:
    """The stop of a session, which may have deleted its other record."""

    host: str  # what was typed after `ssh`
    name: str
    stopped: float = field(default_factory=time.time)  # seconds since the epoch


_RECORDS = Records("stops", StopRecord, ("host", "name"), **NAMES)


def save(host: str, name: str) -> None:
    """Remember that a session was stopped just now, and forget the stop before."""
    for record in _RECORDS.load_all():
        _RECORDS.delete(record)
    _RECORDS.save(StopRecord(host, name))


def forget(host: str, name: str) -> None:
    """Forget the stop of a session that is gone for good."""
    for record in _RECORDS.load_all():
        if (record.host, record.name) == (host, name):
            _RECORDS.delete(record)


def latest() -> StopRecord | None:
    """Return the latest stop, `None` for none."""
    return max(_RECORDS.load_all(), key=lambda record: record.stopped, default=None)
