"""`jlr run -i` and `jlr attach -i`: give a job this program's stdin."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from jlremote.errors import JlrError, LinkLost, Usage
from jlremote.jobs.containers import ContainerJobs
from jlremote.jobs.processes import GIVEN, ProcessJobs
from jlremote.link.client.remote_process import RemoteProcess
from jlremote.workflow.jobs.jobs import JobHandle


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
        backend, told = self._found.backend, False
        assert isinstance(backend, (ContainerJobs, ProcessJobs)), "no other jobs have stdin"
        try:
            with self._found.host.process(backend.feed(self._found.job.key)) as process:
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
