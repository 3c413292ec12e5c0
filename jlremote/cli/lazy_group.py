"""The groups of commands, which load a command once it is called."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Any, TypeAlias

import click

from jlremote.cli.command import (
    Command,
    CommandContext,
    is_typed,
    keep_words,
    usage_line,
    write_lines,
    write_page,
    write_sections,
)
from jlremote.cli.invocation import global_options
from jlremote.errors import Usage
from jlremote.text import closest

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

# Short words for commands of ours.
ALIASES = {"ls": ("list",), "ps": ("list",), "images": ("image", "list"), "runs": ("job", "list")}
# Names that people try, and what they may mean; `None` is not guessed.
_OTHER_NAMES = {
    "exec": "shell",
    "ssh": "shell",
    "jobs": "job list",
    "rmi": "image rm",
    "status": "list",
    "top": "gpus",
    "umount": "mount --unmount",
    "unmount": "mount --unmount",
    "version": "--version",
    **dict.fromkeys(("delete", "kill", "remove")),
}
# They destroy something, so a typo of another command must not lead to them.
DESTRUCTIVE = {
    *("stop", "restart", "rm", "disconnect", "job stop", "job rm"),
    *("image rm", "image prune"),
}
# What a group means that is called without one of its commands.
_DEFAULTS = {"config": "show"}

# By name: the module in `cli.commands`, empty for a group, and the line in the help.
Table: TypeAlias = Mapping[str, tuple[str, str]]


class LazyGroup(click.Group):
    """A group whose commands, help and completion come from a table.

    Args:
        path: the words before its commands, without `jlr`.
        table: by heading of the help and by name, the module in `cli.commands`, empty for a group,
            and the line in the help. A command is found by its path, as `image pull`.
            What has no heading is hidden.
        groups: by path, the commands of each group below.
        closing: by title, lines that close the help as they are.
    """

    context_class = CommandContext

    def __init__(
        self,
        *arguments: Any,
        path: str = "",
        table: Mapping[str, Table],
        groups: Mapping[str, Table],
        closing: Mapping[str, Sequence[str]] | None = None,
        **settings: Any,
    ) -> None:
        super().__init__(*arguments, **settings)
        self._path, self._sections, self._groups = path, table, groups
        self._table = {name: row for rows in table.values() for name, row in rows.items()}
        self._default, self._closing = _DEFAULTS.get(path), closing or {}

    def list_commands(self, ctx: click.Context) -> list[str]:
        return [name for rows in self._rows().values() for name, _ in rows]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in self._table:
            return None
        path = f"{self._path} {cmd_name}".strip()
        module_name, line = self._table[cmd_name]
        if not module_name:
            return LazyGroup(
                path,
                path=path,
                table={"Commands": self._groups[path]},
                groups=self._groups,
                help=line,
                params=global_options(hidden=True),
                no_args_is_help=path not in _DEFAULTS,
            )
        module = import_module(f"jlremote.cli.commands.{module_name}")
        commands = (found for found in vars(module).values() if isinstance(found, Command))
        return next(command for command in commands if command.name == path)

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        keep_words(ctx, args)
        flags = {"-h", "--help", *(name for one in self.params for name in one.opts)}
        word = next((word for word in args if word not in flags), None)
        helps = {"-h", "--help"} & set(args[:1])
        if self._default and word not in self._table and not helps and not ctx.resilient_parsing:
            args = [self._default, *args]
        return super().parse_args(ctx, args)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the command; for an unknown one, suggest a similar one."""
        if args[0] == "help" and not ctx.resilient_parsing:
            if len(args) == 1:
                from jlremote.cli.screen.terminal import answer

                answer(ctx.get_help())
                ctx.exit()
            args = [*args[1:], "--help"]
        if ALIASES.get(args[0], ("",))[0] in self._table:
            args = [*ALIASES[args[0]], *args[1:]]
        if args[0] not in self._table and not ctx.resilient_parsing:
            hint = self._suggestion(args[0]) or f"`{ctx.command_path} --help` lists the commands"
            unknown = Usage(f"no such command `{args[0]}`", hint=hint)
            unknown.usage = usage_line(ctx)
            raise unknown
        return super().resolve_command(ctx, args)

    def _suggestion(self, typed: str) -> str | None:
        below = [f"{path} {name}" for path in self._groups for name in self._groups[path]]
        meant = next((path for path in below if path.rpartition(" ")[2] == typed), None)
        meant = _OTHER_NAMES.get(typed, meant)
        if meant is None and typed not in _OTHER_NAMES:
            near = closest(typed, self._table)
            meant = f"{self._path} {near}".strip() if near else None
            if meant in DESTRUCTIVE:  # the next nearest may do the opposite
                meant = None
        return f"did you mean `jlr {meant}`?" if meant else None

    def format_help(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        if is_typed(ctx, "--help"):
            super().format_help(ctx, formatter)
            return
        closing = f"`{ctx.command_path} COMMAND -h` explains a command"
        if not self._path:
            closing += "; `jlr --help` says all; try `jlr demo`"
        write_page(ctx, formatter, self._rows(), (), closing)

    def _rows(self) -> dict[str, list[tuple[str, str]]]:
        return {
            title: [(name, line) for name, (_, line) in rows.items()]
            for title, rows in self._sections.items()
            if title
        }

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the commands under their headings, and then the global options."""
        records = [parameter.get_help_record(ctx) for parameter in self.get_params(ctx)]
        write_sections(formatter, self._rows())
        write_sections(formatter, {"Options": [record for record in records if record]})

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        for title, lines in self._closing.items():
            write_lines(formatter, title, lines)

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        from click.shell_completion import CompletionItem

        names = (name for name in self.list_commands(ctx) if name.startswith(incomplete))
        commands = [CompletionItem(name, help=self._table[name][1]) for name in names]
        default = self.get_command(ctx, self._default) if self._default else None
        for one in default.params[:1] if default else ():
            commands += one.shell_complete(ctx, incomplete)
        return commands + click.Command.shell_complete(self, ctx, incomplete)
