"""`jlr wait`: each wait is a script on the host that lasts as long, in a thread of its own."""

from __future__ import annotations

import shlex
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent import futures
from contextlib import suppress
from dataclasses import dataclass, replace

from jlremote.errors import Busy, JlrError, NotFound, TimeOver, Unreachable, Usage
from jlremote.gpus import choice, host_gpus, snapshot
from jlremote.hosts.context import Context
from jlremote.hosts.links import ask_each, link_of, link_on, note_silent
from jlremote.jobs import follow, known_jobs, session_job
from jlremote.jobs.known_jobs import JobHandle
from jlremote.jobs.scheduled_jobs import ScheduledJobs
from jlremote.jupyter import scripts
from jlremote.jupyter.api import JupyterApi, Kernel
from jlremote.laptop import sessions
from jlremote.laptop.settings import settings
from jlremote.laptop.settings.options import is_pool
from jlremote.laptop.typed_place import resolved
from jlremote.link.wire.states import State
from jlremote.listing import listing
from jlremote.output import reading, view
from jlremote.output.runs import is_run
from jlremote.place.host.contract import PRINT_GROUP
from jlremote.place.host.shell_text import again_until_hang_up
from jlremote.place.runtimes.table import runtime_of
from jlremote.selection import session_selection
from jlremote.times import in_words, left, seconds_of

END, IDLE, GPUS, TIME_LEFT = "end", "idle", "gpus", "time-left"
ENDS = (
    *(State.STOPPED, State.IDLE_STOPPED, State.JUPYTER_DEAD, State.JOB_ENDED, State.RESTARTED),
    *(State.CONTAINER_GONE, State.CONTAINER_STOPPED),
)
AT_REST = ("idle", "starting", "dead")  # `starting` until a client connects; others are unsure
_SECONDS = 5.0  # between two looks at GPUs on the host


@dataclass(frozen=True)
class Happened:
    """What ended the wait for a target."""

    name: str
    happened: str | None  # what was waited for, or `end` before it; `None` if it is not known
    exit_code: int
    detail: str  # in words


Look = Callable[[], Happened | None]  # `None` to look again


def targets(typed: Sequence[str], what: str, context: Context) -> dict[str, Look]:
    """Return what is waited for (`NotFound`, `Usage`), by name; `what` is the value of `--for`."""
    kind, _, value = what.partition("=")
    if kind not in (END, IDLE, GPUS, TIME_LEFT) or (value and kind in (END, IDLE)):
        raise Usage(f"no `--for {what}`", hint="use `end`, `idle`, `gpus=N` or `time-left=15m`")
    found = dict[str, Look]()
    for word in typed or (None,):
        if kind == GPUS and is_pool(word):  # its hosts that can be waited for, and notes of others
            hosts = settings.load().pool(str(word))
            answers = ask_each(hosts, lambda host, its: _gpus(host, value, its), context)
            note_silent(answers, context)
            found.update(one.answer for one in answers if one.answer is not None)
        else:
            found.update([_target(word, kind, value, context)])
    if kind == GPUS and not any(map(_is_host, found)):
        raise Usage("`--for gpus` needs a host", hint="`jlr list` shows the hosts")
    return found


def _is_host(target: str) -> bool:
    return "/" not in target.removeprefix("ssh://")


def until_done(
    waited: Mapping[str, Look], context: Context, what: str = END, seconds: int = 0
) -> Iterator[Happened]:
    """Yield what happened to each, at once; raise `TimeOver` after `seconds`, unless they are 0."""
    until = time.monotonic() + (seconds or float("inf"))
    rest = {_begun(name, look, context): name for name, look in waited.items()}
    while rest:
        turn = max(0.0, min(until - time.monotonic(), 1.0))  # Ctrl-C waits for it on Windows
        done = futures.wait(rest, turn, futures.FIRST_COMPLETED).done
        if not done and time.monotonic() >= until:
            names, late = shlex.join(rest.values()), in_words(seconds)
            again = f"`jlr wait {names} --for {what} --timeout {late}` waits again"
            raise TimeOver(f"not done after {late}: {names}", hint=again)
        for one in done:
            name, failed = rest.pop(one), one.exception()
            if isinstance(failed, JlrError) and len(waited) > 1:  # the others go on
                yield Happened(name, None, failed.exit_code, failed.message)
            else:
                yield one.result()
        if any(not one.exception() and one.result().happened == GPUS for one in done):
            rest = {one: name for one, name in rest.items() if not _is_host(name)}


def until_end(word: str, context: Context) -> Happened:
    """Wait for the end of one target in this thread, so that nothing waits on after a Ctrl-C."""
    ((name, look),) = targets((word,), END, context).items()
    return _happened(name, look, context)


def _happened(name: str, look: Look, context: Context) -> Happened:
    while (what := follow.reached(look, name, context)) is None:
        threading.Event().wait(follow.AGAIN_SECONDS)
    return what


def _begun(name: str, look: Look, context: Context) -> futures.Future[Happened]:
    told: futures.Future[Happened] = futures.Future()

    def wait() -> None:
        try:
            told.set_result(_happened(name, look, context))
        except Exception as failure:  # noqa: BLE001  # the command's own thread raises it
            told.set_exception(failure)

    threading.Thread(target=wait, daemon=True).start()  # with which a command may end
    return told


def _target(word: str | None, kind: str, value: str, context: Context) -> tuple[str, Look]:
    session, _, run = (word or "").rpartition("/")
    if is_run(run) and kind in (END, GPUS):
        return _run(run, session_selection.chosen(session or None, context), context)
    is_latest = word is None and kind not in (IDLE, GPUS)
    job = known_jobs.find(None, context) if is_latest else known_jobs.meant(word, context)
    if is_run(run) or (job is not None and kind == IDLE):
        raise Usage(f"`--for {kind}` is not for `{word}`", hint="leave it out to wait for its end")
    if job is not None and kind in (END, GPUS):

        def ended() -> Happened:
            code, over = follow.awaited(job, context)
            return Happened(job.selector, END, code, over.job.ending)

        return job.selector, ended
    if kind == GPUS:
        return _gpus(word or sessions.latest().host, value, context)
    if job is not None:
        return _limited(lambda: replace(job, job=job.again()), value, context)
    record = session_selection.chosen(word, context, or_job=True)
    link_of(record, context).status(connect=True)  # a host that is away is told now
    if kind == TIME_LEFT:
        return _limited(lambda: _job_of(record, context), value, context)
    return record.selector, lambda: _session(record, kind, context)


def _limited(find: Callable[[], JobHandle], span: str, context: Context) -> tuple[str, Look]:
    """Return a job of a cluster, also a session's, until it has so much time left."""
    seconds = seconds_of(span, "`--for`")

    def look() -> Happened | None:
        handle = find()
        name, job, backend = handle.selector, handle.job, handle.backend
        if not isinstance(backend, ScheduledJobs) or (job.state == "running" and not job.until):
            raise Usage(f"`{name}` has no time limit", hint=f"`jlr wait {name}` waits for its end")
        if job.over:
            return Happened(name, END, job.exit_code or 0, job.ending)
        if job.state == "waiting":
            follow.wait_begun(handle, context.progress.note)
        elif job.until and (ahead := job.until - time.time() - seconds) > 0:
            list(follow.groups(handle.host, backend.limited(job.key, ahead)))
        elif job.until:
            return Happened(name, TIME_LEFT, 0, f"its time limit ends it in {left(job.until)}")
        return None

    return find().selector, look


def _job_of(record: sessions.SessionRecord, context: Context) -> JobHandle:
    link, name = link_of(record, context), record.name
    job = session_job.read_jobs(link, name).get(name)
    if job is None:
        raise Usage(f"`{record.selector}` has no time limit", hint="`--for end` waits for its end")
    return JobHandle(link, session_job.SESSIONS, job)


def _run(run: str, record: sessions.SessionRecord, context: Context) -> tuple[str, Look]:
    def look() -> Happened:
        records = reading.followed(record.selector, run, context)
        for one in view.ended(each for each in records if each is not None):
            return Happened(name, END, 0 if one.status == "ok" else 1, view.ending(one))
        raise JlrError(f"it is not known how `{run}` ended")

    name = f"{record.selector}/{run}"
    try:
        reading.recorded(record.selector, run, context)
    except NotFound:
        report = listing.report(record.selector, context)
        if report.state in ENDS or _rests(report.kernels):
            raise
        context.progress.note(f"`{run}` has not begun, or does not exist")  # a kernel is busy
    return name, look


def _session(record: sessions.SessionRecord, kind: str, context: Context) -> Happened | None:
    """Wait until a session ends, or is idle; `None` to look again."""
    name, link = record.selector, link_of(record, context)
    report = listing.report(name, context) if sessions.find(record.host, record.name) else None
    if report is None or report.state in ENDS:
        how = report.state if report else "removed"  # by another command
        return Happened(name, END, 0 if kind == END else 1, f"it is {how}")
    if report.state == State.QUEUED:
        follow.wait_begun(_job_of(record, context), context.progress.note)
        return None
    forward = link.status(connect=True).forward(record.name)
    if report.state != State.UP or forward is None:
        raise Unreachable(f"`{name}` is {report.state}: {report.detail}")
    api = JupyterApi(forward.local_port, forward.server)
    runtime = runtime_of(record)
    watching = scripts.watch(runtime, record.name, *forward.server.identity[:2])
    for told in follow.groups(link, runtime.beside(record.name, watching)):
        if kind == END and told == scripts.ENDED:
            return Happened(name, END, 0, "its Jupyter has ended")
        if kind == IDLE and told != scripts.ENDED and _rests(api.kernels()):
            return Happened(name, IDLE, 0, "no kernel of it is busy")
    return None


def _rests(kernels: Sequence[Kernel] | None) -> bool:
    return kernels is not None and all(kernel.state in AT_REST for kernel in kernels)


def _gpus(word: str, text: str, context: Context) -> tuple[str, Look]:
    """Return the GPUs of a host, or of a session's host, until `--gpus` would take them."""
    asked = choice.parse_request(text or "auto")
    host = resolved(word, context.ssh_config).host or word
    if not asked.chosen:
        raise Usage(f"cannot wait for GPUs `{text}`", hint="`gpus`, `gpus=2` and `gpus=0,3` can be")
    link = link_on(host, context)

    def look() -> Happened | None:
        look = snapshot.snapshot_script(host_gpus.engines_asked(host))
        again = again_until_hang_up(f"(\n{look}\n) </dev/null; printf '{PRINT_GROUP}'", _SECONDS)
        for printed in follow.groups(link, again):
            with suppress(Busy, snapshot.CannotAsk, choice.CannotTell):
                inventory = snapshot.read(printed, host)
                chosen = choice.choose(asked, inventory, host, share=False)
                choice.refuse_to_overtake(host, len(chosen.uuids), inventory, None)
                return Happened(host, GPUS, 0, f"free: GPU {', '.join(chosen.places)}")
        return None

    with suppress(Busy, choice.CannotTell):  # others can never be, and are refused now
        choice.choose(asked, host_gpus.ask(link, context.progress.note), host, share=False)
    return host, look
