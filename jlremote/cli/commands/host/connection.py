"""`jlr disconnect` and `jlr forget`."""

from __future__ import annotations

import click

from jlremote.cli.command import command
from jlremote.cli.invocation import Invocation
from jlremote.cli.options.shared import host_argument, optional_host_argument
from jlremote.cli.screen.terminal import answer
from jlremote.errors import Usage


@command(
    "disconnect",
    examples=(
        "jlr disconnect dgx",
        "jlr disconnect --all",
    ),
)
@optional_host_argument
@click.option("--all", "every", is_flag=True, help="Every host.")
@click.pass_obj
def disconnect(invocation: Invocation, host: str | None, every: bool) -> None:
    """End the connection to a host, and its forwards; Jupyter and its kernels keep running.

    The next command for the host connects again, and may ask for a password or a code again.
    """
    if every == bool(host):
        raise Usage("name a host or use `--all`", hint="`jlr list` shows the hosts")
    from jlremote.workflow.host import links

    context = invocation.context()
    ended = links.disconnect(host, context)
    for name in ended:
        answer(f"disconnected from {name}")
    if not ended:
        context.progress.note(f"not connected to {host}" if host else "no connections")


@command("forget", examples=("jlr forget dgx",))
@host_argument
@click.pass_obj
def forget(invocation: Invocation, host: str) -> None:
    """Delete the passwords and passphrases of a host from the keychain.

    Those of its jump hosts are deleted, too. The next login asks again, also whether to remember
    the answer.
    """
    from jlremote.workflow.host import links

    context = invocation.context()
    deleted = links.forget(host, context)
    for account in deleted:
        answer(f"forgot the {account}")
    if not deleted:
        context.progress.note(f"nothing is remembered for {host}")
