"""`--notify`: a word on the desktop of this machine when a job begins or ends."""

from __future__ import annotations

from dataclasses import replace

from jlremote import desktop
from jlremote.errors import JlrError
from jlremote.jobs.containers import ContainerJobs
from jlremote.jobs.scheduled import ScheduledJobs
from jlremote.workflow.host.context import Context
from jlremote.workflow.jobs.jobs import JobHandle, engine_of


def watch(found: JobHandle, context: Context) -> None:
    """Have the link tell of a job, whatever becomes of this command."""
    backend = found.backend
    kind = "scheduled" if isinstance(backend, ScheduledJobs) else "processes"
    if isinstance(backend, ContainerJobs):
        kind = backend.engine.name
    elif found.job.waits_for_gpus and found.job.container == found.job.name:
        engine = engine_of(found.host)  # which has it after its wait
        kind = engine.name if engine else kind
    found.host.watch_job(found.job.name, found.job.key, kind)
    try:
        desktop.check()
    except JlrError as none:
        context.progress.note(f"{none.message}; `jlr notify test` tries it")


def tell_end(found: JobHandle, code: int, context: Context) -> None:
    """Tell that a job has ended, unless the link has done so."""
    if found.host.unwatch_job(found.job.name):
        context.progress.announce(found.selector, replace(found.job, exit_code=code).ending)
