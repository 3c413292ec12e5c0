"""`jlr stop`."""

from __future__ import annotations

import click

from jlremote.cli.command import command
from jlremote.cli.completion import candidates
from jlremote.cli.invocation import Invocation
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
@click.option("--all", "every", is_flag=True, help="Stop every session of every host.")
@click.option("--force", is_flag=True, help="Stop it even if kernels are busy.")
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

    The container keeps running, unless you use --container (stop it) or --remove (stop and delete
    it, with all its files outside volumes). Busy kernels are stopped only with --force.

    SESSION may be a job: it gets SIGTERM, and is killed after ten seconds, or at once with --force.
    --remove then deletes it with its output.
    """
    if every and session:
        raise Usage(
            "`--all` and a session exclude each other",
            hint=f"`jlr stop {session}` stops only that one",
        )
    from jlremote.workflow.host.requests import StopRequest
    from jlremote.workflow.jobs import jobs
    from jlremote.workflow.session import stop as workflow

    request = StopRequest(container=container, remove=remove, force=force)
    context = invocation.context()
    if job := jobs.meant(session, context):
        if container:
            raise Usage(
                f"`{session}` is a job",
                hint="`--container` is for sessions",
            )
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
