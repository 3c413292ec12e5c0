"""Records of jobs: only where they are; everything else is asked of the host."""

from __future__ import annotations

import time
from dataclasses import dataclass, field

from jlremote.errors import NotFound
from jlremote.laptop.record_files import NAMES, Records, selected


@dataclass(frozen=True)
class JobRecord:
    """The laptop's record of a job."""

    host: str  # what was typed after `ssh`
    name: str
    runtime: str
    ssh_config: str | None  # ssh's `-F`
    typed: str | None = None  # the short name, where a naming template made another name of it
    mark: str = ""  # the job's own, empty until it is known; another one may get its name
    began: float = field(default_factory=time.time)  # seconds since the epoch


_RECORDS = Records("jobs", JobRecord, ("host", "name"), NAMES, lambda record: -record.began)
save, delete, load_all = _RECORDS.save, _RECORDS.delete_key, _RECORDS.load_all


def choose(selector: str | None) -> JobRecord | None:
    """Return the job called `NAME` or `HOST/NAME`, by default the latest; `None` without one.

    Raise `NotFound` if none was started here, `Usage` if jobs on several hosts are called so.
    """
    known = load_all()
    if selector is not None:
        return selected(known, selector, "jobs")
    if not known:
        raise NotFound("no job was started here", hint="`jlr run --help` says how to start one")
    return known[0]
