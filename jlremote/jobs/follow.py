"""Show a job to its end across losses of the connection; give it stdin or a terminal.

Stdin is for `jlr run -i` and `attach -i`, a terminal for `run -it` and `attach`.
"""

from __future__ import annotations

import codecs
import threading
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from enum import Flag, auto
from typing import TypeVar

from jlremote import times
from jlremote.errors import JlrError, LinkLost, NeedsAuthentication, Unreachable, Usage
from jlremote.hosts import attached_process as attached
from jlremote.hosts.context import Context
from jlremote.hosts.rollback import on_ctrl_c
from jlremote.jobs.engine_jobs import ContainerJobs
from jlremote.jobs.known_jobs import STOP_SECONDS, JobHandle, Show, remove
from jlremote.jobs.scheduled_jobs import ScheduledJobs
from jlremote.link.client.link import Link
from jlremote.link.client.remote_process import RemoteProcess
from jlremote.place.clusters.scheduler import SchedulerSilent
from jlremote.place.clusters.slurm import SLURM
from jlremote.place.clusters.slurm_lists import explain, read_queue
from jlremote.place.host import kept_jobs
from jlremote.place.host.contract import GROUP, run_script
from jlremote.place.host.kept_jobs import ProcessJobs
from jlremote.questions import Question
from jlremote.untrusted import count

INTERRUPTED = 130  # as a shell tells a death by SIGINT
PAUSES = (0.5, 1.0, 2.0, 5.0, 10.0)
# The pause after the output ended although the job goes on, as when the daemon is restarted.
AGAIN_SECONDS = 1.0
_MOST = 1 << 20  # characters of one group
_BEHIND = 1 << 60  # bytes: no output is as long

Note = Callable[[str], None]
T = TypeVar("T")


class CtrlC(Flag):
    """What Ctrl-C does to a job that is shown."""

    LEAVES = 0  # nothing: the job goes on
    SIGNALS = auto()  # SIGINT, then SIGKILL; the third one leaves it
    ASKS = auto()  # the first one asks whether it is to be interrupted, or left
    CANCELS = auto()  # it takes a waiting job out of its queue


def follow(
    handle: JobHandle, show: Show, context: Context, ctrl_c: CtrlC = CtrlC.SIGNALS
) -> tuple[int, JobHandle]:
    """Show a job's output from the beginning until it ends; return its exit code and its end.

    Each byte is shown once: what was shown is counted, and after a loss it goes on from there.
    Raise `JlrError` if it is not known how the job ended, `KeyboardInterrupt` if the job was left
    by Ctrl-C.
    """
    watch, name = _Watch(handle, show, context, ctrl_c), handle.selector
    way_back = f"`jlr job attach {name}` shows it again, `jlr job stop {name}` ends it"
    try:
        with on_ctrl_c(watch.interrupted):
            return watch.to_the_end(), watch.handle
    except (KeyboardInterrupt, SystemExit, OSError):
        stays = "stays queued" if watch.queued else "keeps running"
        context.progress.note(f"`{name}` {stays}; {way_back}")
        raise
    except JlrError as error:
        error.hint = error.hint or way_back
        raise


def awaited(handle: JobHandle, context: Context) -> tuple[int, JobHandle]:
    """Do as `follow`, without the output."""
    behind = Counter(stdout=_BEHIND, stderr=_BEHIND)
    watch = _Watch(handle, lambda *_: None, context, _shown=behind)
    return watch.to_the_end(), watch.handle


@dataclass
class _Watch:
    """A job's output, as far as it was shown."""

    handle: JobHandle
    _show: Show
    _context: Context
    _ctrl_c: CtrlC = CtrlC.SIGNALS
    _shown: Counter[str] = field(default_factory=Counter)  # bytes by stream
    _interrupts: int = 0
    _asking: bool = False
    _cancelled: bool = False
    queued: bool = False  # whether it is in a queue, as far as is known

    def to_the_end(self) -> int:
        """Show all output; return the exit code, or raise that it is not known."""
        if self.handle.job.state in ("waiting", "unknown"):
            self.queued = True
            self._reached(lambda: wait_begun(self.handle, self._context.progress.note))
            if isinstance(self.handle.backend, ProcessJobs):
                self.handle = self._reached(self.handle.begun)
            self.queued = False
        name, backend = self.handle.job.name, self.handle.backend
        while True:
            self._print(backend.follow)
            job = self._reached(self.handle.again)
            self.handle = replace(self.handle, job=job)
            if job.over:
                break
            threading.Event().wait(AGAIN_SECONDS)
        self._print(backend.rest)
        if job.exit_code is None and not self._cancelled:
            how = "" if job.state == "ended" else "it is not known how "
            raise JlrError(f"{how}`{name}` ended: {job.detail}")
        if job.detail or job.exit_code is None:
            self._context.progress.note(f"`{name}` ended: {job.detail}")
        return INTERRUPTED if job.exit_code is None else job.exit_code

    def _print(self, script: Callable[[str, int, int], str]) -> None:
        """Show the new output that a script prints; begin again after a loss."""

        def once() -> None:
            text = script(self.handle.job.key, self._shown["stdout"], self._shown["stderr"])
            with self.handle.host.process(text) as process:
                for stream, data in process:
                    self._show(stream, data)
                    self._shown[stream] += len(data)

        self._reached(once)

    def _reached(self, ask: Callable[[], T]) -> T:
        return reached(ask, self.handle.selector, self._context)

    def interrupted(self) -> None:
        """Leave the job alone, or do to it what Ctrl-C is to do."""
        if self._asking or CtrlC.SIGNALS not in self._ctrl_c:
            raise KeyboardInterrupt
        backend, key, name = self.handle.backend, self.handle.job.key, self.handle.selector
        if self.queued:
            if self._cancelled or CtrlC.CANCELS not in self._ctrl_c:
                raise KeyboardInterrupt
            self._cancelled = True
            message = f"cancelling `{name}`; Ctrl-C again leaves it alone"
            self._send(message, backend.stop(key, force=False))
            return
        if CtrlC.ASKS in self._ctrl_c and not self._interrupts and self._is_left():
            raise KeyboardInterrupt
        self._interrupts += 1
        if self._interrupts > 2:
            raise KeyboardInterrupt
        signal, message = "INT", f"asking `{name}` to stop (SIGINT); Ctrl-C again kills it"
        if self._interrupts == 2:
            signal, message = "KILL", f"killing `{name}` (SIGKILL); Ctrl-C again leaves it alone"
        self._send(message, backend.signal(key, signal))

    def _is_left(self) -> bool:
        """Ask whether the job goes on without this command; Ctrl-C meanwhile says no."""
        self._asking = True
        name = self.handle.selector
        text = f"Interrupt `{name}`? No leaves it running; Ctrl-C again is a yes"
        try:
            return self._context.asker.ask(Question("confirm", text, echo=True)) != "yes"
        except (KeyboardInterrupt, NeedsAuthentication):
            return False
        finally:
            self._asking = False

    def _send(self, message: str, script: str) -> None:
        """Note and run it in a thread: output goes on meanwhile, and the host may be away.

        Ctrl-C may have come within a write to stderr, in which Python writes nothing else.
        """

        def run() -> None:
            self._context.progress.note(message)
            try:
                run_script(self.handle.host, script, timeout=STOP_SECONDS)
            except JlrError as failure:
                self._context.progress.note(f"cannot signal the job: {failure.message}")

        threading.Thread(target=run, daemon=True).start()


def reached(ask: Callable[[], T], what: str, context: Context) -> T:
    """Return the result of `ask`, repeated until the host can be reached."""
    pauses = iter(PAUSES)
    while True:
        try:
            return ask()
        except Unreachable as lost:
            pause = next(pauses, PAUSES[-1])
            if pause == PAUSES[0]:
                context.progress.note(f"{lost.message}; `{what}` keeps running; trying again")
        threading.Event().wait(pause)


def wait_begun(handle: JobHandle, note: Note) -> None:
    """Wait until a job begins or ends, and note why (`Unreachable`: the connection broke)."""
    backend, noted = handle.backend, ""
    assert not isinstance(backend, ContainerJobs), "such a job waits as a process"
    for printed in groups(handle.host, backend.waiting(handle.job.key)):
        if isinstance(backend, ScheduledJobs):
            reason, reserved = _reason(handle, printed)
            changed = reason
        else:
            waits, reserved = kept_jobs.waits(printed), False
            reason, changed = waits and f"waits, {waits}", waits.partition(":")[0]
        if reason and changed != noted:
            note(f"`{handle.selector}` {reason}{_sooner(handle) if reserved else ''}")
            noted = changed


def groups(link: Link, script: str) -> Iterator[str]:
    """Yield the groups that a script prints as they come (`Unreachable`: the connection broke)."""
    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    printed = ""
    with link.process(script) as process:
        for stream, data in process:
            printed += decoder.decode(data) if stream == "stdout" else ""
            printed = printed[-_MOST:]
            while GROUP in printed:
                group, _, printed = printed.partition(GROUP)
                yield group


def _reason(handle: JobHandle, printed: str) -> tuple[str, bool]:
    """Return why a job waits, empty if it does not, and whether maintenance may be the reason."""
    try:
        job = read_queue(printed).get(handle.job.job or "")
    except SchedulerSilent as silent:
        return f"is queued; {silent.message}", False
    if job is None or job.phase != "waiting":
        return "", False
    why = explain(job.reason)
    action = why.action
    if why.kind == "never":
        action = f"`jlr job stop {handle.selector}` cancels it; {action}"
    begins = "" if job.start is None else f"; {times.expected(job.start)}"
    return f"waits: {why.sentence}; {action}{begins}", why.reserved


def _sooner(handle: JobHandle) -> str:
    """Return the time limit that ends a job before the next maintenance."""
    printed = run_script(handle.host, SLURM.maintenance()).stdout.split()
    ahead = [seconds for text in printed if (seconds := count(text) or 0) > 60]
    if not ahead:
        return ""
    begins = f"; maintenance begins in {times.in_words(min(ahead) // 60 * 60)}"
    return f"{begins}: a job with a `--time` below that need not wait for its end"


def attach(
    handle: JobHandle, screen: attached.Screen, context: Context, detach_keys: str | None
) -> tuple[int, bool]:
    """Connect the terminal to a job that runs, or start it there; again after each loss.

    Return its exit code and `True`, or 0 and `False` if it was left running, by the keys that
    detach or by `~.`. A job that cannot be started is deleted (`JlrError`). `LinkLost` means that
    the connection was ended on purpose; the job goes on.
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
        remove(handle)
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
