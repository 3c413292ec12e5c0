"""`jlr ssh-config` and `jlr proxy`: any ssh client in a session."""

from __future__ import annotations

import click

from jlremote.cli.command import command
from jlremote.cli.completion import candidates
from jlremote.cli.invocation import Invocation
from jlremote.cli.options import shared
from jlremote.cli.screen.terminal import answer, answer_json, tell
from jlremote.errors import JlrError, Usage


@command(
    "ssh-config",
    examples=(
        "jlr ssh-config                     # the block, to look at or to copy",
        "jlr ssh-config --install           # then: ssh cont1.jlr, scp, rsync, git, editors",
        "jlr ssh-config --plain             # for programs with an SSH library of their own",
        "jlr ssh-config --remove",
    ),
)
@click.option("--install", is_flag=True, help="Include the block in ~/.ssh/config.")
@click.option("--plain", is_flag=True, help="Print a block for each session, with nothing fancy.")
@click.option("--remove", is_flag=True, help="Take that line out of ~/.ssh/config again.")
@click.option("-y", "--yes", is_flag=True, help="Do not ask before ~/.ssh/config is changed.")
@shared.json_option("Print the block, or what was changed, as a JSON object.")
@click.pass_obj
def ssh_config(
    invocation: Invocation, install: bool, plain: bool, remove: bool, yes: bool, as_json: bool
) -> None:
    """Let ssh, and all that uses it, reach sessions as `NAME.jlr`.

    `cont1.jlr` and `cont1.dgx.jlr` are a session, `dgx.jlr` is the host itself. They go over the
    connection that jlr has anyway, so there is no second login, and nothing is installed there.

    --install adds one `Include` line to ~/.ssh/config, shows it first, and leaves all else as it
    is. Programs that follow no such line (Claude Desktop, paramiko) read what --plain prints.
    """
    from jlremote.workflow.editors import ssh_config as workflow

    if install + plain + remove > 1:
        raise Usage("`--install`, `--plain` and `--remove` cannot be combined", hint="choose one")
    if not (install or remove):
        block = workflow.plain_blocks() if plain else workflow.block()
        if as_json:
            answer_json({"block": block, "installed": workflow.is_installed()})
        else:
            answer(block, newline=False)
        return
    act = workflow.install if install else workflow.remove
    change = act(invocation.context(silent=as_json).asker, tell, agreed=yes)
    if not change.done:
        raise JlrError(f"left `{change.file}` as it is, because the answer was no")
    if as_json:
        told = {"file": str(change.file), "changed": bool(change.line), "line": change.line or None}
        answer_json(told)
    elif not change.line:
        tell(f"`{change.file}` {'has' if install else 'does not have'} the line already")
    elif install:
        tell("`ssh SESSION.jlr` reaches a session; scp, rsync, git and editors do, too")


@command(
    "proxy", examples=("jlr proxy cont1.jlr       # as ssh runs it: ProxyCommand jlr proxy %n",)
)
@click.argument("name", shell_complete=candidates.ssh_names)
@click.pass_obj
def proxy(invocation: Invocation, name: str) -> None:
    """Connect an ssh client with a session; ssh runs this, by `jlr ssh-config`.

    Its stdin and stdout carry the SSH protocol. Questions of the host are asked on the terminal.
    """
    from jlremote.workflow.editors import proxy as workflow

    invocation.quiet = True  # ssh shows what goes to stderr, above the person's own output
    workflow.proxy(name, invocation.context(), stdin=0, stdout=1)
