"""`jlr completion`."""

from __future__ import annotations

import click

from jlremote.cli.command import command
from jlremote.cli.screen.terminal import answer


@command(
    "completion",
    examples=(
        "jlr completion bash > ~/.local/share/bash-completion/completions/jlr",
        "jlr completion zsh > ~/.zfunc/_jlr       # with ~/.zfunc in fpath",
        "jlr completion fish > ~/.config/fish/completions/jlr.fish",
    ),
)
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
def completion(shell: str) -> None:
    """Print the completion script for your shell.

    It completes hosts from your ssh config, sessions, commands and options.
    """
    from jlremote.cli.completion import shells

    answer(shells.script(shell), newline=False)
