"""A group of commands that imports a command only when it is called."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import click

from jlremote.cli.invocation import write_lines
from jlremote.errors import Usage

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem


class LazyGroup(click.Group):
    """A group whose help and completion come from a table.

    Args:
        table: by name, `MODULE:ATTRIBUTE` in `cli.commands` and the line in the help.
        sections: by title, lines that close the help as they are.
    """

    def __init__(
        self,
        *arguments: Any,
        table: Mapping[str, tuple[str, str]],
        sections: Mapping[str, Sequence[str]],
        **settings: Any,
    ) -> None:
        super().__init__(*arguments, **settings)
        self._table = table
        self._sections = sections

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names in the table's order, which is the order of a day's work."""
        return list(self._table)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import a command."""
        if cmd_name not in self._table:
            return None
        from importlib import import_module

        module, _, attribute = self._table[cmd_name][0].partition(":")
        command = getattr(import_module(f"jlremote.cli.commands.{module}"), attribute)
        assert isinstance(command, click.Command)
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the command; for a typo, name the nearest one."""
        if args[0] not in self._table and not ctx.resilient_parsing:
            raise Usage(f"no such command `{args[0]}`", hint=self._nearest(args[0]))
        return super().resolve_command(ctx, args)

    def _nearest(self, typed: str) -> str:
        import difflib

        near = difflib.get_close_matches(typed, self._table, n=1, cutoff=0.5)
        return f"did you mean `jlr {near[0]}`?" if near else "`jlr --help` lists the commands"

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the table into the help."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, line) for name, (_, line) in self._table.items()])

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the group's closing sections into the help."""
        for title, lines in self._sections.items():
            write_lines(formatter, title, lines)

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """Complete from the table; options as any command does."""
        from click.shell_completion import CompletionItem

        names = [name for name in self._table if name.startswith(incomplete)]
        commands = [CompletionItem(name, help=self._table[name][1]) for name in names]
        return commands + click.Command.shell_complete(self, ctx, incomplete)
