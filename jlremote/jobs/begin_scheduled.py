"""Submit jobs to a scheduler, each exactly once, and try what a submission would give."""

from __future__ import annotations

import threading
import time
from dataclasses import replace

from jlremote.containers import image_definition
from jlremote.errors import Busy, JlrError, Unreachable
from jlremote.gpus.wait import DISK_HINT
from jlremote.hosts.context import Context
from jlremote.hosts.links import connect, link_on
from jlremote.hosts.requests import RunRequest, Scheduled, StartContext
from jlremote.jobs.begin_on_host import ANOTHER_NAME
from jlremote.jobs.command_file import as_typed
from jlremote.jobs.known_jobs import SCHEDULED, JobHandle
from jlremote.jobs.scheduled_jobs import UNKNOWN, ScheduledJobs
from jlremote.jobs.scheduled_script import ScheduledPlan
from jlremote.link.client.link import Link
from jlremote.place.clusters import launchers
from jlremote.place.clusters.scheduler import SchedulerSilent
from jlremote.place.clusters.slurm import SLURM
from jlremote.place.host.contract import Completed, attempt, run_script
from jlremote.place.host.job import Job
from jlremote.place.host.kept_jobs import NO_FOLDER, TAKEN
from jlremote.place.runtimes.engine.engine_errors import EngineMissing
from jlremote.place.runtimes.runtime import Attachment
from jlremote.place.runtimes.scripts import variables
from jlremote.text import one_line

# The pauses between looks for a submission whose answer was lost.
PAUSES = (2.0, 5.0, 10.0, 20.0)
_SUBMIT_SECONDS = 120.0


def begin(start: StartContext, request: RunRequest, how: Scheduled) -> list[JobHandle]:
    """Submit a job, or an array; return its jobs as before anything is known. See `submit`."""
    try:
        plan = _plan(start, request, how)
    except EngineMissing as missing:
        run = f"jlr run {start.host.name} --slurm -- srun --container-image=IMAGE COMMAND"
        missing.hint = f"{missing.hint}; `{run}` where the site has pyxis"
        raise
    first = submit(start, plan, SCHEDULED)
    ids = [f"{first.partition('_')[0]}_{index}" for index in plan.indices] or [first]
    begun = Job("", "waiting", plan.shown, since=time.time(), remove=plan.remove)
    begun = replace(begun, gpus=how.resources.gres, mark=plan.mark)
    return [
        JobHandle(start.host, SCHEDULED, replace(begun, name=name, job=id_))
        for name, id_ in zip(plan.names, ids, strict=True)
    ]


def _plan(start: StartContext, request: RunRequest, how: Scheduled) -> ScheduledPlan:
    options, command = start.request.options, request.command
    plain, private = variables.parted(dict(item.split("=", 1) for item in options.environment))
    indices: tuple[int, ...] = ()
    if how.resources.array is not None:
        limit = run_script(start.host, SLURM.array_limit()).stdout
        indices = launchers.indices(how.resources.array, limit)
    if how.ranks is not None:
        command = launchers.task(command, how.ranks)
    if start.runtime.has_images:
        gpus = "all" if how.resources.asks_for_gpus else None
        start = replace(start, request=replace(start.request, gpus=gpus, scheduled=how))
        where = Attachment(workdir=options.workdir)
        command = image_definition.entered(start, command, where, plain, elsewhere=True)
        private = image_definition.JOB_FOLDER + private
    elif plain:
        command = ("env", *(f"{name}={value}" for name, value in plain.items()), *command)
    plan = new_plan(start, how, command, as_typed(request.command), private)
    return replace(plan, ranks=how.ranks, remove=request.remove, indices=indices)


def new_plan(
    start: StartContext, how: Scheduled, argv: tuple[str, ...], shown: str, private: str
) -> ScheduledPlan:
    """Return the plan of a job; `private` is shell text with its variables."""
    first, key = image_definition.pulled_first(start)
    return ScheduledPlan(
        name=start.name,
        mark=start.mark,
        argv=argv,
        shown=shown,
        resources=how.resources,
        workdir=None if start.runtime.has_images else start.request.options.workdir,
        modules=how.modules,
        variables=private,
        first=first,
        key=key,
    )


def submit(start: StartContext, plan: ScheduledPlan, jobs: ScheduledJobs) -> str:
    """Submit a job and return its id; the rollback of `start` cancels it.

    The script is run again where its answer was lost; it submits once. Raise `Busy` if there is a
    job of that name, `SchedulerSilent` if it is not known whether it was submitted, and `JlrError`
    if the scheduler refused it.
    """
    start.undo.callback(attempt, start.host, jobs.take_back(plan))
    script, pauses = jobs.submit(plan), iter(PAUSES)
    with start.context.progress.step(f"Submit {start.name}"):
        while True:
            try:
                answer = run_script(start.host, script, timeout=_SUBMIT_SECONDS)
                if answer.status == 0 and answer.stdout.strip():
                    return answer.stdout.split()[0]
                error = _error(start, answer)
                lost: JlrError | None = error if isinstance(error, SchedulerSilent) else None
            except Unreachable as broken:
                error = lost = broken
            pause = next(pauses, None)
            if lost is None or pause is None:
                raise error
            start.note(f"{lost.message}; looking again for the job in {pause:.0f} s")
            threading.Event().wait(pause)


def _error(start: StartContext, answer: Completed) -> JlrError:
    if answer.status == TAKEN:
        return Busy(f"a job `{start.name}` already exists", hint=ANOTHER_NAME)
    if answer.status == NO_FOLDER:
        what = f"cannot write the job's files in `{one_line(answer.stdout)}` on `{start.host.name}`"
        return JlrError(f"{what}: {answer.complaint}", hint=DISK_HINT)
    if answer.status == UNKNOWN:
        what = f"Slurm does not answer, so it is not known whether `{start.name}` was submitted"
        hint = f"`jlr job list {start.host.name}` shows whether the job is there"
        return SchedulerSilent(what, hint=hint)
    return _refusal(start.host, answer)


def _refusal(host: Link, answer: Completed) -> JlrError:
    error = SLURM.refusal(answer)
    error.hint = error.hint or SLURM.read_choices(run_script(host, SLURM.choices()).stdout)
    return error


def estimate(host: str, how: Scheduled, context: Context) -> str:
    """Return what the scheduler says of a submission that is tried (`JlrError`: a refusal)."""
    link = connect(link_on(host, context), context)
    trial = f"echo '#!/bin/sh' | {{\n{SLURM.estimate(how.resources)}\n}}"
    answer = run_script(link, trial)
    if answer.status != 0:
        raise _refusal(link, answer)
    return SLURM.read_estimate(answer)
