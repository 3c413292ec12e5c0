"""`jlr forget`."""

from __future__ import annotations

import click

from jlremote.cli.command import command
from jlremote.cli.invocation import Invocation
from jlremote.cli.options.shared import host_argument
from jlremote.cli.screen.terminal import answer


@command("forget", examples=("jlr forget dgx",))
@host_argument
@click.pass_obj
def forget(invocation: Invocation, host: str) -> None:
    """Delete the passwords and passphrases of a host from the keychain.

    Those of its jump hosts are deleted, too. The next login asks again, also whether to remember
    the answer.
    """
    from jlremote.workflow.host.forget import forget as delete

    context = invocation.context()
    deleted = delete(host, context)
    for account in deleted:
        answer(f"forgot the {account}")
    if not deleted:
        context.progress.note(f"nothing is remembered for {host}")
