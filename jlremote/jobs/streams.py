"""Give a job stdin (`jlr run -i`, `attach -i`) or a terminal (`run -it`, `attach`)."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from jlremote.errors import JlrError, LinkLost, Usage
from jlremote.hosts.attached_process import Screen, TerminalClosed, run_attached, terminal_of
from jlremote.hosts.context import Context
from jlremote.jobs import known_jobs
from jlremote.jobs.engine_jobs import ContainerJobs
from jlremote.jobs.known_jobs import JobHandle
from jlremote.link.client.remote_process import RemoteProcess


def attach(
    handle: JobHandle, screen: Screen, context: Context, detach_keys: str | None
) -> tuple[int, bool]:
    """Connect the terminal to a job that runs, or start it there.

    Return its exit code and `True`, or 0 and `False` if it was left running, by the keys that
    detach or by `~.`.

    Raises:
        JlrError: the job could not be started; it is deleted.
        LinkLost: the connection broke; the job goes on.
    """
    selector, first = handle.selector, handle.job.state == "created"
    assert isinstance(handle.backend, ContainerJobs), "no other jobs have a terminal"
    script = handle.starting or handle.backend.attach(handle.job.key, detach_keys, first=first)
    try:
        run_attached(handle.host.process(script, terminal_of(screen)), screen)
    except TerminalClosed:
        screen.recover()
    except LinkLost as lost:
        screen.recover()
        raise LinkLost(
            f"{lost.message}; `{selector}` keeps running",
            hint=f"`jlr job attach {selector}` attaches again, `jlr job stop {selector}` ends it",
        ) from lost
    job = handle.again()
    if job.state == "created":
        known_jobs.remove(handle)
        raise JlrError(f"`{selector}` did not start: {job.detail or 'the engine says why above'}")
    if not job.over:
        again = f"`jlr job attach {selector}` attaches again"
        context.progress.note(f"`{selector}` keeps running; {again}")
        return 0, False
    if job.detail:
        context.progress.note(f"`{selector}` ended: {job.detail}")
    return job.exit_code or 0, True


@contextmanager
def given(handle: JobHandle, pieces: Iterable[bytes]) -> Iterator[None]:
    """Give a job pieces of stdin, the last one empty, while the block follows it.

    Raises:
        Usage: it was begun without `-i`.
        JlrError: not all was given, for example because the connection broke.
    """
    if not handle.job.interactive:
        raise Usage(
            f"the job `{handle.selector}` has no stdin",
            hint="begin it with `jlr run … --image IMAGE -i` for that",
        )
    failures: list[JlrError] = []
    threading.Thread(target=_feed, args=(handle, pieces, failures), daemon=True).start()
    yield
    for failure in failures:
        kind = LinkLost if isinstance(failure, LinkLost) else JlrError
        raise kind(
            f"`{handle.selector}` did not get all of this stdin: {failure.message}",
            hint=f"`jlr job logs {handle.selector}` shows its output",
        )


def _feed(handle: JobHandle, pieces: Iterable[bytes], failures: list[JlrError]) -> None:
    """Give stdin until the host's script ends; another thread reads stdin here.

    The script says when it has all; leaving it then would end an engine's client that passes it on.
    """
    assert isinstance(handle.backend, ContainerJobs), "no other jobs have stdin"
    script, has_all = handle.backend.feed(handle.job.key), False
    try:
        with handle.host.process(script) as process:
            process.wait_connected()
            threading.Thread(target=_read, args=(pieces, process), daemon=True).start()
            for stream, _ in process:
                has_all = has_all or stream == "stdout"
    except JlrError as failure:
        if not has_all:
            failures.append(failure)


def _read(pieces: Iterable[bytes], process: RemoteProcess) -> None:
    for piece in pieces:
        if not process.give(piece):
            return
