"""`jlr forget`."""

from __future__ import annotations

import click

from jlremote.cli.completion import candidates
from jlremote.cli.invocation import Invocation, command
from jlremote.cli.screen.terminal import answer


@command("forget", examples=("jlr forget dgx",))
@click.argument("host", shell_complete=candidates.hosts)
@click.pass_obj
def forget(invocation: Invocation, host: str) -> None:
    """Delete the passwords and passphrases that the keychain holds for a host.

    Those of its jump hosts too. The next login asks again, also whether to remember the answer.
    """
    from jlremote.workflow.host.forget import forget as delete

    context = invocation.context()
    deleted = delete(host, context)
    for account in deleted:
        answer(f"forgot the {account}")
    if not deleted:
        context.progress.note(f"nothing is remembered for {host}")
