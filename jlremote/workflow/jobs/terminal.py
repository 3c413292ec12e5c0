"""`jlr run -it` and `jlr attach`: connect the user's terminal to a job that has one."""

from __future__ import annotations

from jlremote.errors import JlrError, LinkLost
from jlremote.jobs.containers import ContainerJobs
from jlremote.jobs.processes import ProcessJobs
from jlremote.workflow.host.attached_process import Screen, TerminalClosed, run_script_attached
from jlremote.workflow.host.context import Context
from jlremote.workflow.jobs import jobs
from jlremote.workflow.jobs.jobs import JobHandle


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
    selector = found.selector
    try:
        run_script_attached(found.host, _script(found, detach_keys), screen)
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


def _script(found: JobHandle, detach_keys: str | None) -> str:
    assert isinstance(found.backend, (ContainerJobs, ProcessJobs)), "no other jobs have a terminal"
    return found.starting or found.backend.attach(found.job, detach_keys)
