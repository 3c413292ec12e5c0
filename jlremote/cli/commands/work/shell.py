"""`jlr shell`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from jlremote.cli.command import command
from jlremote.cli.completion import candidates
from jlremote.cli.invocation import Invocation
from jlremote.cli.options import shared
from jlremote.errors import Usage
from jlremote.text import is_name, one_line

if TYPE_CHECKING:
    from jlremote.cli.keyboard.local_terminal import LocalTerminal


@command(
    "shell",
    takes_command=True,
    takes_line=True,
    examples=(
        "jlr shell",
        "jlr shell dgx/cont1 htop                     # in any container, also without Jupyter",
        "jlr shell cont1 --keep                       # again after a loss: the same shell",
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
    type=shared.detach_keys,
    metavar="KEYS",
    help="Keys that detach, and leave the process running in the container. Default: "
    "ctrl-p,ctrl-q.",
)
@click.option(
    "--keep",
    is_flag=True,
    help="Keep the shell on the host with tmux; the same command attaches again.",
)
@click.option("--name", metavar="NAME", help="With --keep: name of the shell, to keep several.")
@shared.shared_option
@click.pass_obj
def shell(invocation: Invocation, /, *, keep: bool, name: str | None, **options: Any) -> int:
    """Open a terminal in a session's container, or run a command there.

    LINE is for the shell there, as with ssh, so `rsync -e "jlr shell"` and
    GIT_SSH_COMMAND="jlr shell" work. Behind `--`, words stay as they are.

    HOST/CONTAINER may be any running container of the host. HOST is the host itself, and so is a
    session without a container. Exit code and output are those of the command. Without a terminal
    here it gets none there, and its bytes stay unchanged.

    `~.` at the beginning of a line ends it, even without a network. So does a lost connection: the
    process there gets SIGHUP, as with ssh. With --keep it keeps running, and the same command
    attaches to it again from any machine; tmux's own keys (ctrl-b d) and `~.` detach.
    """
    from jlremote.cli.keyboard.local_terminal import LocalTerminal
    from jlremote.sessions import shell as workflow

    screen = LocalTerminal()
    request = workflow.ShellRequest(**options, keep=_label(screen, keep=keep, name=name))
    return workflow.shell(request, screen, invocation.context())


def _label(screen: LocalTerminal, *, keep: bool, name: str | None) -> str | None:
    """Return the name of a shell to be kept, empty for the first one; `None` for another shell.

    Raises:
        Usage: there is no terminal, or no such name is possible.
    """
    if not keep:
        if name is not None:
            raise Usage("`--name` needs `--keep`", hint="`jlr shell … --keep --name NAME`")
        return None
    if screen.kind is None:
        raise Usage("`--keep` needs a terminal here", hint="`jlr run … --detach` is for scripts")
    if name is not None and not is_name(name):
        raise Usage(
            f"invalid name `{one_line(name)}`", hint="use letters, digits, `_`, `.` and `-`"
        )
    return name or ""
