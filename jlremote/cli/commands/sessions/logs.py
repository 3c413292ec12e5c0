"""`jlr logs`."""

from __future__ import annotations

import click

from jlremote.cli.command import command
from jlremote.cli.completion import candidates
from jlremote.cli.invocation import Invocation
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
@click.option("-f", "--follow", is_flag=True, help="Follow the output until Ctrl-C.")
@click.option(
    "-n",
    "--tail",
    type=click.IntRange(0),
    default=100,
    show_default=True,
    metavar="N",
    help="Start with the last N lines.",
)
@click.pass_obj
def logs(invocation: Invocation, session: str | None, follow: bool, tail: int) -> None:
    """Show the log of a session's Jupyter server, or the output of a job.

    SESSION may be a job; its stdout and stderr are kept apart, byte for byte.
    """
    from jlremote.workflow.jobs import jobs
    from jlremote.workflow.session.logs import log

    context = invocation.context()
    if job := jobs.meant(session, context):
        from jlremote.cli.keyboard.local_terminal import LocalTerminal

        jobs.log(job, LocalTerminal().show, follow=follow, tail=tail)
        return
    for text in log(session, context, follow=follow, tail=tail):
        answer(text, newline=False)
