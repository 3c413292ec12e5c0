"""`jlr run` and `jlr attach`: follow a job to its end, across losses of the connection."""

from __future__ import annotations

import signal
import threading
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import TypeVar

from jlremote.errors import JlrError, Unreachable
from jlremote.hosts.context import Context
from jlremote.jobs.containers import LAST_BYTES, ContainerJobs, is_all_shown
from jlremote.jobs.scheduled import ScheduledJobs
from jlremote.jobs.stories import queue
from jlremote.jobs.stories.jobs import STOP_SECONDS, JobHandle, Show
from jlremote.place.host.contract import run_script
from jlremote.place.host.kept_jobs import ProcessJobs

INTERRUPTED = 130  # as a shell tells a death by SIGINT
PAUSES = (0.5, 1.0, 2.0, 5.0, 10.0)
# The pause after the output ended although the job goes on, as when the daemon is restarted.
AGAIN_SECONDS = 1.0


def follow(
    found: JobHandle, show: Show, context: Context, *, cancels: bool = False
) -> tuple[int, JobHandle]:
    """Show a job's output from the beginning until it ends; return its exit code and its end.

    Each byte is shown once: what was shown is counted, and after a loss it goes on from there. With
    `cancels` Ctrl-C takes a waiting job out of its queue.

    Raises:
        JlrError: it is not known how the job ended.
        KeyboardInterrupt: Ctrl-C was pressed a third time.
    """
    watch = _Watch(found, show, context, cancels)
    try:
        with _ctrl_c(watch.interrupted):
            return watch.to_the_end(), watch.found
    except (KeyboardInterrupt, SystemExit, OSError):
        stays = "stays queued" if watch.queued else "keeps running"
        context.progress.note(f"`{found.selector}` {stays}; {_way_back(found)}")
        raise
    except JlrError as error:
        error.hint = error.hint or _way_back(found)
        raise


def _way_back(found: JobHandle) -> str:
    return f"`jlr attach {found.selector}` shows it again, `jlr stop {found.selector}` ends it"


T = TypeVar("T")


@dataclass
class _Watch:
    """A job's output, as far as it was shown."""

    found: JobHandle
    _show: Show
    _context: Context
    _cancels: bool = False
    _seen: Counter[str] = field(default_factory=Counter)
    _last: dict[str, bytearray] = field(default_factory=lambda: defaultdict(bytearray))
    _asked: int = 0
    _cancelled: bool = False
    queued: bool = False  # whether it is in a queue, as far as is known

    def to_the_end(self) -> int:
        """Show all output; return the exit code, or raise that it is not known."""
        self._wait_begun()
        name, backend = self.found.job.name, self.found.backend
        while True:
            has_all_lines = self._print(backend.follow)
            job, last = self._reached(self.found.at_end)
            self.found = replace(self.found, job=job)
            if job.over:
                break
            threading.Event().wait(AGAIN_SECONDS)
        if not (has_all_lines and last is not None and self._are_shown(last)):
            self._print(backend.rest)
        if job.exit_code is None and self._cancelled:
            self._context.progress.note(f"`{name}` ended: {job.detail}")
            return INTERRUPTED
        if job.exit_code is None and job.state == "ended":
            raise JlrError(f"`{name}` ended: {job.detail}")
        if job.exit_code is None:
            raise JlrError(f"it is not known how `{name}` ended: {job.detail}")
        if job.detail:
            self._context.progress.note(f"`{name}` ended: {job.detail}")
        return job.exit_code

    def _wait_begun(self) -> None:
        """Wait in a scheduler's queue, or for GPUs; Ctrl-C leaves the job there."""
        found, note = self.found, self._context.progress.note
        if found.job.state not in ("waiting", "unknown"):
            return
        self.queued = True
        if isinstance(found.backend, ScheduledJobs):
            scheduled = found.backend
            self._reached(lambda: queue.wait_begun(found, scheduled, note))
        elif isinstance(found.backend, ProcessJobs):
            process = found.backend
            self._reached(lambda: queue.wait_for_gpus(found, process, note))
            self.found = self._reached(found.begun)
        self.queued = False

    def _print(self, script: Callable[[str, int, int], str]) -> bool:
        """Show the new output that a script prints; begin again after a loss.

        Return whether every whole line of it was shown; an engine would read all of its log once
        more to find that nothing is left, as long again as the job's output took.
        """

        def once() -> bool:
            from_beginning = not self._seen
            text = script(self.found.job.key, self._seen["stdout"], self._seen["stderr"])
            with self.found.host.process(text) as process:
                for stream, data in process:
                    self._show(stream, data)
                    self._seen[stream] += len(data)
                    self._last[stream] += data
                    del self._last[stream][:-LAST_BYTES]
            backend = self.found.backend
            to_the_end = isinstance(backend, ContainerJobs) and backend.follows_to_the_end
            return to_the_end and from_beginning and process.status == 0

        return self._reached(once)

    def _are_shown(self, last: Mapping[str, bytes]) -> bool:
        """Return whether the last records of an engine's log were shown."""
        return all(is_all_shown(bytes(self._last[stream]), data) for stream, data in last.items())

    def _reached(self, ask: Callable[[], T]) -> T:
        return reached(ask, self.found.selector, self._context)

    def interrupted(self) -> None:
        """Signal the job: SIGINT, then SIGKILL; leave it alone the third time, and while queued."""
        backend, key = self.found.backend, self.found.job.key
        name = self.found.selector
        if self.queued:
            if self._cancelled or not self._cancels:
                raise KeyboardInterrupt
            self._cancelled = True
            said = f"cancelling `{name}`; Ctrl-C again leaves it alone"
            self._send(said, backend.stop(key, force=False))
            return
        self._asked += 1
        if self._asked == 1:
            said = f"asking `{name}` to stop (SIGINT); Ctrl-C again kills it"
        elif self._asked == 2:
            said = f"killing `{name}` (SIGKILL); Ctrl-C again leaves it alone"
        else:
            raise KeyboardInterrupt
        self._send(said, backend.signal(key, "INT" if self._asked == 1 else "KILL"))

    def _send(self, said: str, script: str) -> None:
        """Say and run it in a thread: output goes on meanwhile, and there may be no connection.

        Ctrl-C may have come within a write to stderr, in which Python writes nothing else.
        """
        threading.Thread(target=self._run, args=(said, script), daemon=True).start()

    def _run(self, said: str, script: str) -> None:
        self._context.progress.note(said)
        try:
            run_script(self.found.host, script, timeout=STOP_SECONDS)
        except JlrError as failure:
            self._context.progress.note(f"cannot signal the job: {failure.message}")


def reached(ask: Callable[[], T], what: str, context: Context) -> T:
    """Return the result of `ask`, repeated until the host can be reached; `what` goes on there."""
    pauses = iter(PAUSES)
    while True:
        try:
            return ask()
        except Unreachable as lost:
            pause = next(pauses, PAUSES[-1])
            if pause == PAUSES[0]:
                context.progress.note(f"{lost.message}; `{what}` keeps running; trying again")
        threading.Event().wait(pause)


@contextmanager
def _ctrl_c(then: Callable[[], None]) -> Iterator[None]:
    """Call `then` at each Ctrl-C while the block runs."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGINT, lambda *_: then())
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
