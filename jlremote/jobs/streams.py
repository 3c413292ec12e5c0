"""Give a job stdin (`jlr run -i`, `attach -i`) or a terminal (`run -it`, `attach`)."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace

from jlremote.errors import JlrError, LinkLost, Usage
from jlremote.hosts import attached_process as attached
from jlremote.hosts.context import Context
from jlremote.jobs import known_jobs
from jlremote.jobs.engine_jobs import ContainerJobs
from jlremote.jobs.known_jobs import JobHandle
from jlremote.link.client.link import Link
from jlremote.link.client.remote_process import RemoteProcess


def attach(
    handle: JobHandle, screen: attached.Screen, context: Context, detach_keys: str | None
) -> tuple[int, bool]:
    """Connect the terminal to a job that runs, or start it there; again after each loss.

    Return its exit code and `True`, or 0 and `False` if it was left running, by the keys that
    detach or by `~.`.

    Raises:
        JlrError: the job could not be started; it is deleted.
        LinkLost: the connection was ended on purpose; the job goes on.
    """
    selector, first = handle.selector, handle.job.state == "created"
    again = f"`jlr job attach {selector}` attaches again"
    assert isinstance(handle.backend, ContainerJobs), "no other jobs have a terminal"
    script = handle.starting or handle.backend.attach(handle.job.key, detach_keys, first=first)
    back = _again(handle, script if first or handle.starting else None, detach_keys, screen)
    opened = handle.host.process(script, attached.terminal_of(screen))
    lasting = attached.Lasting(handle.host.unasked(again), back, again)
    try:
        attached.run_attached(opened, screen, lasting)
    except attached.TerminalClosed:
        context.progress.note(f"left `{selector}` as it is; {again}")
        return 0, False
    job = handle.again()
    if job.state == "created":
        known_jobs.remove(handle)
        raise JlrError(f"`{selector}` did not start: {job.detail or 'the engine says why above'}")
    if not job.over:
        context.progress.note(f"`{selector}` keeps running; {again}")
        return 0, False
    if job.detail:
        context.progress.note(f"`{selector}` ended: {job.detail}")
    return job.exit_code or 0, True


def _again(
    handle: JobHandle, start: str | None, detach_keys: str | None, screen: attached.Screen
) -> attached.Again:
    """Return how to attach to a job again.

    What it printed meanwhile comes first if all before was shown, as it is from its `start` on.
    """

    def joined(host: Link, shown: int) -> attached.Opened:
        job, backend = replace(handle, host=host).again(), handle.backend
        assert isinstance(backend, ContainerJobs), "no other jobs have a terminal"
        script = start or ""
        if not start or job.state != "created":
            script = f"stty -opost -echo\n{backend.rest(job.key, shown, 0)}" if start else ""
            script += "" if job.over else backend.attach(job.key, detach_keys, first=False)
        return host.process(script, attached.terminal_of(screen))

    return joined


@contextmanager
def given(handle: JobHandle, pieces: Iterable[bytes]) -> Iterator[None]:
    """Give a job pieces of stdin, the last one empty, while the block follows it.

    Raise `Usage` if it was begun without `-i`; `JlrError` if not all was given, for example because
    the connection broke.
    """
    if not handle.job.interactive:
        hint = "begin it with `jlr run … --image IMAGE -i` for that"
        raise Usage(f"the job `{handle.selector}` has no stdin", hint=hint)
    failures: list[JlrError] = []
    threading.Thread(target=_feed, args=(handle, pieces, failures), daemon=True).start()
    yield
    for failure in failures:
        kind = LinkLost if isinstance(failure, LinkLost) else JlrError
        what = f"`{handle.selector}` did not get all of this stdin: {failure.message}"
        hint = f"`jlr job logs {handle.selector}` shows its output"
        raise kind(what, hint=hint)


def _feed(handle: JobHandle, pieces: Iterable[bytes], failures: list[JlrError]) -> None:
    """Give stdin until the host's script ends; another thread reads stdin here.

    The script says when it has all; leaving it then would end an engine's client that passes it on.
    """
    assert isinstance(handle.backend, ContainerJobs), "no other jobs have stdin"
    script, has_all = handle.backend.feed(handle.job.key), False

    def read(process: RemoteProcess) -> None:
        all(process.give(piece) for piece in pieces)  # until it takes no more

    try:
        with handle.host.process(script) as process:
            threading.Thread(target=read, args=(process,), daemon=True).start()
            for stream, _ in process:
                has_all = has_all or stream == "stdout"
    except JlrError as failure:
        if not has_all:
            failures.append(failure)
