"""`jlr lab` and `jlr kernels`."""

from __future__ import annotations

import click

from jlremote.cli.command import command
from jlremote.cli.invocation import Invocation
from jlremote.cli.options import shared

_PROGRAM = "jlremote.cli.kernel"


@command(
    "lab",
    takes_command=True,
    examples=(
        "jlr lab                          # the latest session",
        "jlr lab dgx/cont1",
        "jlr lab cont1 -- --port 9000     # the rest is `jupyter lab`'s",
    ),
)
@shared.session_argument
@click.pass_obj
def lab(invocation: Invocation, session: str | None, command: tuple[str, ...]) -> int:
    """Run the JupyterLab of this machine on a session's kernels.

    Files and notebooks are those of the current folder here, kernels run there. What follows `--`
    goes to `jupyter lab`. Ctrl-C ends it, with the kernels that it started.
    """
    from jlremote.workflow.kernels import lab as workflow

    return workflow.lab(session, command, invocation.context())


@command(
    "kernels",
    examples=(
        "jlr kernels install cont1        # for VS Code, JupyterLab, nbclient here",
        "jlr kernels list",
        "jlr kernels remove cont1",
    ),
)
@click.argument("action", type=click.Choice(("install", "list", "remove")))
@shared.session_argument
@shared.json_option("Print a JSON array.")
@click.pass_obj
def kernels(invocation: Invocation, action: str, session: str | None, as_json: bool) -> None:
    """Install the kernels of a session in every Jupyter of this machine, list or remove them.

    `install` writes a kernel spec for each kind of kernel of the session. VS Code, JupyterLab,
    nbclient and `jupyter nbconvert` here then offer it, and what they run runs there. No spec has a
    token. Interrupt and restart work, and a lost connection comes back by itself; while the session
    does not run, its kernels do not start.

    `list` without SESSION shows all that are installed, `remove` takes those of one session away;
    with those of several sessions installed, it must be named.
    """
    from jlremote.cli.screen import reports, tables
    from jlremote.workflow.kernels import specs

    context = invocation.context(silent=as_json)
    if action == "install":
        found = specs.install(session, context, _PROGRAM)
    else:
        found = specs.remove(session) if action == "remove" else specs.listed(session)
    none = "no kernels are installed; `jlr kernels install SESSION` installs them"
    tables.show_reports(found, reports.KERNEL_SPECS, context, as_json=as_json, none=none)
