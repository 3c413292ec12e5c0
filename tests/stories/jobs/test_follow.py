"""A job that is followed: losses of the connection, exit codes and Ctrl-C."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any, cast

import pytest

from jlremote.errors import JlrError
from jlremote.hosts.context import Context
from jlremote.hosts.requests import StopRequest
from jlremote.jobs.follow import follow
from jlremote.jobs.known_jobs import JobHandle, remove, stop
from jlremote.place.host.contract import Completed
from jlremote.place.host.job import Job
from jlremote.place.host.kept_jobs import ProcessJobs
from tests.stories.parts import Notes, context

Piece = tuple[str, bytes]


class FakeBackend:
    """Writes into each script what was asked for."""

    def follow(self, name: str, stdout: int, stderr: int) -> str:
        return f"follow {name} {stdout} {stderr}"

    def rest(self, name: str, stdout: int, stderr: int) -> str:
        return f"rest {name} {stdout} {stderr}"

    def signal(self, name: str, signal: str) -> str:
        return f"signal {name} {signal}"

    def stop(self, name: str, *, force: bool) -> str:
        return f"stop {name} {force}"

    def remove(self, name: str) -> str:
        return f"remove {name}"


@dataclass
class FakeLink:
    """Prints what the test gives it for each script, and may lose the connection."""

    printed: dict[str, list[Piece | Exception]] = field(default_factory=dict)
    asked: list[str] = field(default_factory=list)
    status: int = 0
    name: str = "lab"

    @contextmanager
    def process(self, script: str) -> Iterator[Any]:
        self.asked.append(script)
        yield self._pieces(script)

    def _pieces(self, script: str) -> Iterator[Piece]:
        for piece in self.printed.get(script, []):
            if isinstance(piece, Exception):
                raise piece
            yield piece

    def run(self, steps: Mapping[str, str], **_: Any) -> dict[str, Completed]:
        self.asked += steps.values()
        return {name: Completed(self.status, "", "it is busy") for name in steps}


class Handle(JobHandle):
    """A job whose state the test chooses."""

    def again(self) -> Job:
        return self.job


@dataclass(frozen=True)
class Waiting(JobHandle):
    """A job that waits for GPUs, and what it becomes."""

    later: JobHandle | None = None

    def begun(self) -> JobHandle:
        assert self.later is not None
        return self.later


@dataclass
class Watched:
    link: FakeLink
    progress: Notes
    handle: JobHandle
    shown: list[Piece]

    @property
    def context(self) -> Context:
        return context(self.progress)

    def follow(self) -> int:
        code, self.handle = follow(
            self.handle, lambda *piece: self.shown.append(piece), self.context
        )
        return code


def watched(job: Job, **printed: list[Piece | Exception]) -> Watched:
    link = FakeLink({text.replace("_", " "): pieces for text, pieces in printed.items()})
    backend = cast("Any", FakeBackend())
    return Watched(link, Notes(), Handle(cast("Any", link), backend, job), [])


def ended(exit_code: int | None = 0, detail: str | None = None) -> Job:
    state = "lost" if exit_code is None else "ended"
    return Job("train", state, "true", exit_code=exit_code, detail=detail)


def test_what_the_engine_had_not_shown_by_the_end_is_shown_after_it() -> None:
    job = watched(ended(), follow_train_0_0=[("stderr", b"a")], rest_train_0_1=[("stderr", b"b")])
    assert job.follow() == 0
    assert b"".join(data for _, data in job.shown) == b"ab"


def test_a_job_that_waited_is_returned_as_what_it_became() -> None:
    job = watched(replace(ended(3), id="c0ffee"))
    waiting = replace(ended(), state="waiting", exit_code=None)
    job.handle = Waiting(job.handle.host, ProcessJobs(), waiting, later=job.handle)
    assert job.follow() == 3
    assert (job.handle.job.key, job.handle.job.over) == ("c0ffee", True)
    remove(job.handle)
    assert job.link.asked[-1] == "remove c0ffee"


def test_a_job_whose_end_was_not_recorded_is_an_error_with_the_way_back() -> None:
    job = watched(ended(None, "it was killed from outside"))
    with pytest.raises(JlrError, match="it is not known how `train` ended") as error:
        job.follow()
    assert "jlr job attach lab/train" in (error.value.hint or "")


def test_a_job_that_is_over_is_not_stopped_again() -> None:
    job = watched(ended())
    assert stop(job.handle, StopRequest(), job.context) == ["it had already ended"]
    assert job.link.asked == []


def test_a_job_that_does_not_stop_is_an_error_with_the_hosts_words() -> None:
    job = watched(Job("train", "running", "true"))
    job.link.status = 1
    with pytest.raises(JlrError, match="cannot stop `lab/train`: it is busy"):
        stop(job.handle, StopRequest(), job.context)
    with pytest.raises(JlrError, match="cannot delete `lab/train`: it is busy"):
        remove(job.handle)
