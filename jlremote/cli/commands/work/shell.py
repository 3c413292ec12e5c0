"""`jlr shell`."""

from __future__ import annotations

from typing import Any

import click

from jlremote.cli.command import command
from jlremote.cli.completion import candidates
from jlremote.cli.invocation import Invocation
from jlremote.cli.options import shared


@command(
    "shell",
    takes_command=True,
    examples=(
        "jlr shell",
        "jlr shell dgx/cont1 -- htop                  # in any container, also without Jupyter",
        "jlr shell dgx                                # on the host itself",
        "jlr shell cont1 -u root -- apt-get install -y git",
        "jlr shell cont1 -- tar -C /data -c runs | tar -x     # bytes stay unchanged",
        "jlr shell -- python - < here.py; echo $?",
    ),
)
@click.argument(
    "where",
    metavar="[SESSION|HOST/CONTAINER|HOST]",
    required=False,
    shell_complete=candidates.places,
)
@click.option("-u", "--user", metavar="USER[:GROUP]", help="User in the container.")
@click.option("-w", "--workdir", metavar="FOLDER", help="Folder to start in.")
@click.option(
    "--detach-keys",
    metavar="KEYS",
    help="Keys that detach, and leave the process running in the container. Default: "
    "ctrl-p,ctrl-q.",
)
@shared.shared_option
@click.pass_obj
def shell(invocation: Invocation, /, **options: Any) -> int:
    """Open a terminal in a session's container, or run a COMMAND there.

    HOST/CONTAINER may be any running container of the host. HOST is the host itself, and so is a
    session without a container. Exit code and output are those of the command. Without a terminal
    here it gets none there, and its bytes stay unchanged.

    `~.` at the beginning of a line ends it, even without a network. So does a lost connection: the
    process there gets SIGHUP, as with ssh. For work that must last, use `jlr run`.
    """
    from jlremote.cli.keyboard.local_terminal import LocalTerminal
    from jlremote.workflow.session import shell as workflow

    request = workflow.ShellRequest(**options)
    return workflow.shell(request, LocalTerminal(), invocation.context())
