"""`jlr stop`."""

from __future__ import annotations

import click

from jlremote.cli.completion import candidates
from jlremote.cli.invocation import Invocation, command
from jlremote.cli.screen.terminal import answer
from jlremote.errors import Usage


@command(
    "stop",
    examples=(
        "jlr stop",
        "jlr stop dgx/cont1 --container",
        "jlr stop cont1 --remove --force",
        "jlr stop --all",
        "jlr stop train-3f2a --remove                         # a job",
    ),
)
@click.argument("session", required=False, shell_complete=candidates.sessions_and_jobs)
@click.option("--container", is_flag=True, help="Stop the container too.")
@click.option("--remove", is_flag=True, help="Stop the container and delete it.")
@click.option("--all", "every", is_flag=True, help="Every session of every host.")
@click.option("--force", is_flag=True, help="Even if kernels are busy.")
@click.pass_obj
def stop(
    invocation: Invocation,
    session: str | None,
    container: bool,
    remove: bool,
    every: bool,
    force: bool,
) -> None:
    """Stop a session: its Jupyter server, its kernels and the local port.

    The container stays unless you say --container (stop it too) or --remove (and delete it, with
    all that is in it and in no volume). Busy kernels are not stopped without --force.

    A job may be named in SESSION's place: it is asked to end (SIGTERM), and killed after ten
    seconds, with --force at once; --remove then deletes it with its output.
    """
    if every and session:
        raise Usage(
            "`--all` goes with no session", hint=f"`jlr stop {session}` stops only that one"
        )
    from jlremote.workflow.host.requests import StopRequest
    from jlremote.workflow.jobs import jobs
    from jlremote.workflow.session import stop as workflow

    request = StopRequest(container=container, remove=remove, force=force)
    context = invocation.context()
    if job := jobs.meant(session, context):
        if container:
            raise Usage(f"`{session}` is a job", hint="--container is for sessions")
        done = jobs.stop(job, context, force=force, delete=remove)
        answer(f"{job.selector}: {', '.join(done)}")
        return
    if every:
        reports = workflow.stop_all(request, context)
    else:
        reports = [workflow.stop(session, request, context)]
    for report in reports:
        answer(f"{report.host}/{report.name}: {', '.join(report.done) or 'nothing to stop'}")
    if not reports:
        context.progress.note("no sessions")
