"""`jlr shell`."""

from __future__ import annotations

import click

from jlremote.cli.completion import candidates
from jlremote.cli.invocation import Invocation, command


@command(
    "shell",
    takes_command=True,
    examples=(
        "jlr shell",
        "jlr shell dgx/cont1 -- htop",
        "jlr shell cont1 -u root -- apt-get install -y git",
        "jlr shell cont1 -- tar -C /data -c runs | tar -x     # bytes as they are",
        "jlr shell -- python - < here.py; echo $?",
    ),
)
@click.argument("session", required=False, shell_complete=candidates.sessions)
@click.option("-u", "--user", metavar="USER[:GROUP]", help="User in the container.")
@click.option("-w", "--workdir", metavar="FOLDER", help="Folder to begin in.")
@click.option(
    "--detach-keys",
    metavar="KEYS",
    help="Keys that leave what runs in the container alone, as the engine's own option; "
    "default: ctrl-p,ctrl-q.",
)
@click.pass_obj
def shell(
    invocation: Invocation,
    session: str | None,
    user: str | None,
    workdir: str | None,
    detach_keys: str | None,
    command: tuple[str, ...],
) -> int:
    """Open a terminal where a session's server runs, or run a COMMAND there.

    It is the container's, or without one the host's, as the user of the session. Exit code and
    output are the command's own. Without a terminal here it gets none there, and bytes stay bytes.

    `~.` at the beginning of a line ends it even when the network is dead, and so does the loss of
    the connection: what runs there is hung up on, as with ssh. Use `jlr run` for what is to last.
    """
    from jlremote.cli.screen.shell_screen import LocalScreen
    from jlremote.workflow.session import shell as workflow

    request = workflow.ShellRequest(session, command, user, workdir, detach_keys)
    return workflow.shell(request, LocalScreen(), invocation.context())
