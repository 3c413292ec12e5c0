"""The commands of `jlr` by their paths, as `image pull`."""

from __future__ import annotations

import click

from jlremote.cli.command import Command
from jlremote.cli.program import COMMANDS as SECTIONS
from jlremote.cli.program import GROUPS, LazyGroup, jlr

TOP = {name: row for rows in SECTIONS.values() for name, row in rows.items()}
BELOW = {f"{path} {name}": row for path, rows in GROUPS.items() for name, row in rows.items()}
COMMANDS = {path: row for path, row in (TOP | BELOW).items() if row[0]}  # without groups


def found(words: list[str]) -> tuple[click.Command, click.Context, list[str]]:
    """Return the command that words call, its parent's context, and the words behind its path."""
    called, context = jlr, click.Context(jlr, info_name="jlr", **jlr.context_settings)
    while words:
        called.parse_args(context, [*words])
        typed = [*context._protected_args, *context.args]
        name, below, words = called.resolve_command(context, typed)
        if not isinstance(below, LazyGroup):
            assert below is not None
            return below, context, words
        called, context = below, click.Context(below, info_name=name, parent=context)
    return called, context, words


def command(path: str) -> Command:
    called, _, _ = found(path.split())
    assert isinstance(called, Command)
    return called
