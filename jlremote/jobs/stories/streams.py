"""What a job gets: `jlr run -i` and `attach -i` give stdin, `run -it` and `attach` a terminal."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from jlremote.errors import JlrError, LinkLost, Usage
from jlremote.hosts.attached_process import Screen, TerminalClosed, run_script_attached
from jlremote.hosts.context import Context
from jlremote.jobs.containers import ContainerJobs
from jlremote.jobs.stories import jobs
from jlremote.jobs.stories.jobs import JobHandle
from jlremote.link.client.remote_process import RemoteProcess
from jlremote.place.host.kept_jobs import GIVEN, ProcessJobs


def attach(
    found: JobHandle, screen: Screen, context: Context, detach_keys: str | None
) -> tuple[int, bool]:
    """Connect the terminal to a job that runs, or start it there.

    Return its exit code and `True`, or 0 and `False` if it was left running, by the keys that
    detach or by `~.`.

    Raises:
        JlrError: the job could not be started; it is deleted.
        LinkLost: the connection broke; the job goes on.
    """
    selector, first = found.selector, found.job.state == "created"
    backend = _with_streams(found)
    script = found.starting or backend.attach(found.job.key, detach_keys, first=first)
    try:
        run_script_attached(found.host, script, screen)
    except TerminalClosed:
        screen.recover()
    except LinkLost as lost:
        screen.recover()
        raise LinkLost(
            f"{lost.message}; `{selector}` keeps running",
            hint=f"`jlr attach {selector}` attaches again, `jlr stop {selector}` ends it",
        ) from lost
    job = found.again()
    if job.state == "created":
        jobs.remove(found)
        raise JlrError(f"cannot start `{selector}`: {job.detail or 'see above'}")
    if not job.over:
        context.progress.note(f"`{selector}` keeps running; `jlr attach {selector}` attaches again")
        return 0, False
    if job.detail:
        context.progress.note(f"`{selector}` ended: {job.detail}")
    return job.exit_code or 0, True


def _with_streams(found: JobHandle) -> ContainerJobs | ProcessJobs:
    assert isinstance(found.backend, (ContainerJobs, ProcessJobs)), "no other jobs have stdin"
    return found.backend


@contextmanager
def given(found: JobHandle, pieces: Iterable[bytes]) -> Iterator[None]:
    """Give a job pieces of stdin, the last one empty, while the block follows it.

    Raises:
        Usage: it was begun without `-i`.
        JlrError: not all was given, above all because the connection broke.
    """
    if not found.job.interactive:
        raise Usage(
            f"the job `{found.selector}` has no stdin", hint="begin it with `jlr run … -i` for that"
        )
    feeding = _Feeding(found, pieces)
    feeding.start()
    yield
    if feeding.failure is not None:
        kind = LinkLost if isinstance(feeding.failure, LinkLost) else JlrError
        raise kind(
            f"`{found.selector}` did not get all of this stdin: {feeding.failure.message}",
            hint=f"`jlr logs {found.selector}` shows its output",
        )


class _Feeding(threading.Thread):
    """The thread that waits until all stdin has reached the host; another one reads it here."""

    def __init__(self, found: JobHandle, pieces: Iterable[bytes]) -> None:
        super().__init__(daemon=True)
        self.failure: JlrError | None = None
        self._found = found
        self._pieces = pieces

    def run(self) -> None:
        """Give it until the host's script ends: with the job, where an engine's client takes it.

        The script says when it has all, but leaving it then would end a client that has not passed
        all of it on, or is still being started.
        """
        script, told = _with_streams(self._found).feed(self._found.job.key), False
        try:
            with self._found.host.process(script) as process:
                process.wait_connected()
                threading.Thread(target=self._read, args=(process,), daemon=True).start()
                for stream, _ in process:
                    told = told or stream == "stdout"
            if not told and process.status == GIVEN:
                self.failure = JlrError("another command already passed its stdin")
        except JlrError as failure:
            self.failure = None if told else failure

    def _read(self, process: RemoteProcess) -> None:
        for piece in self._pieces:
            if not process.give(piece):
                return
