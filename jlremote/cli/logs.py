"""`jlr logs`."""

from __future__ import annotations

import click

from jlremote.cli import candidates
from jlremote.cli.invocation import Invocation, command
from jlremote.cli.terminal import answer


@command(
    "logs",
    examples=(
        "jlr logs",
        "jlr logs -f cont1",
        "jlr logs --tail 1000 dgx/cont1 | grep -i error",
    ),
)
@click.argument("session", required=False, shell_complete=candidates.sessions)
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
    """Show the log of a session's Jupyter server."""
    from jlremote.workflow.logs import log

    for text in log(session, invocation.context(), follow=follow, tail=tail):
        answer(text, newline=False)
