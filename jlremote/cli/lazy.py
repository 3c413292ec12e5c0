"""A group of commands that imports a command only when it is called."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import click

from jlremote.cli.command import write_lines, write_sections
from jlremote.errors import Usage

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

# Names from other programs that people try, and the hint for each.
_OTHER_NAMES = {
    "ls": "did you mean `jlr list`?",
    "ps": "did you mean `jlr list`?",
    "rm": "`jlr stop SESSION --remove` removes a session's container",
    "exec": "did you mean `jlr shell`?",
    "ssh": "did you mean `jlr shell`?",
    "top": "did you mean `jlr gpus`?",
    "help": "did you mean `jlr --help`?",
    "version": "did you mean `jlr --version`?",
}
# They destroy something, so a typo of another command must not lead to them.
_NEVER_GUESSED = {"stop", "forget", "unmount", "disconnect"}


class LazyGroup(click.Group):
    """A group whose help and completion come from a table.

    Args:
        table: by heading of the help and by name, `MODULE:ATTRIBUTE` in `cli.commands` and the line
            in the help.
        closing: by title, lines that close the help as they are.
    """

    def __init__(
        self,
        *arguments: Any,
        table: Mapping[str, Mapping[str, tuple[str, str]]],
        closing: Mapping[str, Sequence[str]],
        **settings: Any,
    ) -> None:
        super().__init__(*arguments, **settings)
        self._sections = table
        self._table = {name: row for rows in table.values() for name, row in rows.items()}
        self._closing = closing

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names in the table's order, the order of a day's work."""
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
        """Find the command; for an unknown one, suggest a similar one."""
        if args[0] not in self._table and not ctx.resilient_parsing:
            raise Usage(f"no such command `{args[0]}`", hint=self._suggestion(args[0]))
        return super().resolve_command(ctx, args)

    def _suggestion(self, typed: str) -> str:
        import difflib

        if typed in _OTHER_NAMES:
            return _OTHER_NAMES[typed]
        harmless = [name for name in self._table if name not in _NEVER_GUESSED]
        near = difflib.get_close_matches(typed, harmless, n=1, cutoff=0.5)
        return f"did you mean `jlr {near[0]}`?" if near else "`jlr --help` lists the commands"

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the commands under their headings, and then the global options."""
        commands = {
            title: [(name, line) for name, (_, line) in rows.items()]
            for title, rows in self._sections.items()
        }
        records = [parameter.get_help_record(ctx) for parameter in self.get_params(ctx)]
        write_sections(formatter, commands)
        write_sections(formatter, {"Options": [record for record in records if record]})

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the closing sections into the help."""
        for title, lines in self._closing.items():
            write_lines(formatter, title, lines)

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """Complete from the table; options as any command does."""
        from click.shell_completion import CompletionItem

        names = [name for name in self._table if name.startswith(incomplete)]
        commands = [CompletionItem(name, help=self._table[name][1]) for name in names]
        return commands + click.Command.shell_complete(self, ctx, incomplete)
