"""`jlr logs`."""

from __future__ import annotations

import click

from jlremote.cli.completion import candidates
from jlremote.cli.invocation import Invocation, command
from jlremote.cli.screen.terminal import answer


@command(
    "logs",
    examples=(
        "jlr logs",
        "jlr logs -f cont1",
        "jlr logs --tail 1000 dgx/cont1 | grep -i error",
        "jlr logs -f dgx/train-3f2a            # a job's output",
    ),
)
@click.argument("session", required=False, shell_complete=candidates.sessions_and_jobs)
@click.option("-f", "--follow", is_flag=True, help="Go on until Ctrl-C.")
@click.option(
    "-n",
    "--tail",
    type=click.IntRange(0),
    default=100,
    show_default=True,
    metavar="N",
    help="Begin with the last N lines.",
)
@click.pass_obj
def logs(invocation: Invocation, session: str | None, follow: bool, tail: int) -> None:
    """Show the log of a session's Jupyter server, or what a job has printed.

    A job may be named in SESSION's place; its stdout and stderr are apart, and as they are.
    """
    from jlremote.workflow.jobs import jobs
    from jlremote.workflow.session.logs import log

    context = invocation.context()
    if job := jobs.meant(session, context):
        from jlremote.cli.screen.shell_screen import LocalScreen

        jobs.log(job, LocalScreen().show, follow=follow, tail=tail)
        return
    for text in log(session, context, follow=follow, tail=tail):
        answer(text, newline=False)
