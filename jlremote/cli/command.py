"""Click's commands with our additions: options in groups, examples, and a group that loads late."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from inspect import cleandoc
from textwrap import dedent
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

import click

from jlremote.cli.invocation import global_options
from jlremote.errors import Usage
from jlremote.text import closest

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

# The headings of a command's options, in the order of its help.
GROUPS = ("Session", "Container", "GPUs", "Cluster", "Jupyter", "This machine", "Output")

# A name that is longer gets its line of the help below it, also at 80 columns.
_NAME_WIDTH = 26
_FEW = 8

# Short words for commands of ours.
ALIASES = {
    "ls": ("list",),
    "ps": ("list",),
    "images": ("image", "list"),
    "runs": ("job", "list"),
}
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

# Stands for a hyphen while click breaks lines, which it would do in the middle of `--dry-run`.
_HYPHEN = "\N{NON-BREAKING HYPHEN}"

# By name: the module in `cli.commands`, empty for a group, and the line in the help.
Table: TypeAlias = Mapping[str, tuple[str, str]]
Function = TypeVar("Function", bound=Callable[..., Any])


class Option(click.Option):
    """An option under a heading of its command's help: one of `GROUPS`, or none."""

    def __init__(self, *declarations: Any, group: str, **settings: Any) -> None:
        super().__init__(*declarations, **settings)
        self.group = group


def option(
    names: str, text: str, *, group: str = "", **settings: Any
) -> Callable[[Function], Function]:
    """Decorate a function with an option; `text` is its help, `settings` are as for `click.option`.

    `names` are separated by spaces: the option's own, the parameter's if that is another one, and
    the metavar, as `-v --volume SOURCE:TARGET`. Without a metavar or a type it is a flag; one with
    a `--no-…` form is `None` until it is given.
    """
    words = names.split()
    if not words[-1].startswith("-") and not words[-1].islower():
        settings["metavar"] = words.pop()
        if "flag_value" in settings:
            settings["is_flag"] = False  # the value may be left out
    elif "/" in names:
        settings["default"] = None
    elif not settings.keys() & {"type", "flag_value"}:
        settings["is_flag"] = True
    return click.option(*words, cls=Option, group=group, help=text, **settings)


def options(*declared: Callable[[Any], Any]) -> Callable[[Function], Function]:
    """Return a decorator that adds several options, in the order of the help."""

    def add(function: Function) -> Function:
        for one in reversed(declared):
            function = one(function)
        return function

    return add


class HelpFormatter(click.HelpFormatter):
    """A formatter of help that breaks lines at spaces only."""

    def write_text(self, text: str) -> None:
        super().write_text(text.replace("-", _HYPHEN))

    def write(self, string: str) -> None:
        super().write(string.replace(_HYPHEN, "-"))


class CommandContext(click.Context):
    """Click's context, whose help is written by our formatter."""

    formatter_class = HelpFormatter


class Command(click.Command):
    """A command whose help has its options in groups, and then examples.

    Args:
        examples: lines to copy; what follows a `#` is a comment.
        takes_command: whether what follows `--` is a command for the host, `command`.
        takes_line: whether what follows its one argument is a command, too, as with ssh: the words
            are one line for the shell there.
    """

    context_class = CommandContext

    def __init__(
        self,
        *arguments: Any,
        examples: Sequence[str],
        takes_command: bool = False,
        takes_line: bool = False,
        **settings: Any,
    ) -> None:
        super().__init__(*arguments, **settings)
        self.examples = examples
        self.takes_command = takes_command
        self.takes_line = takes_line

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        try:
            return self._parsed(ctx, args)
        except click.UsageError as failure:
            failure.ctx = failure.ctx or ctx  # click tells not always whose option has no value
            raise

    def _parsed(self, ctx: click.Context, args: list[str]) -> list[str]:
        at = args.index("--") if "--" in args else len(args)
        if not self.takes_command:
            return super().parse_args(ctx, args)
        line = self._after_argument(ctx, args[:at]) if self.takes_line else 0
        words = args[at + 1 :]
        if line:
            at -= line
            words = ["sh", "-c", " ".join(args[at:])]
        rest = super().parse_args(ctx, args[:at])
        ctx.params["command"] = tuple(words)
        return rest

    def _after_argument(self, ctx: click.Context, args: Sequence[str]) -> int:
        parser = self.make_parser(ctx)
        parser.allow_interspersed_args = False
        _, behind, _ = parser.parse_args(list(args))
        parsed, behind, _ = parser.parse_args(behind)
        names = [one.name or "" for one in self.params if isinstance(one, click.Argument)]
        return len(behind) + 1 if isinstance(parsed.get(names[0]), str) else 0

    def collect_usage_pieces(self, ctx: click.Context) -> list[str]:
        pieces = super().collect_usage_pieces(ctx)
        if self.takes_command:
            pieces.append("[LINE|-- COMMAND...]" if self.takes_line else "[-- COMMAND...]")
        return [piece.replace("-", _HYPHEN) for piece in pieces]

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the options under their headings, or all under one heading if there are few."""
        sections: dict[str, list[tuple[str, str]]] = {title: [] for title in (*GROUPS, "Options")}
        shown = [one for one in self.get_params(ctx) if isinstance(one, click.Option)]
        groups = [getattr(one, "group", "") for one in shown]
        many = sum(map(bool, groups)) > _FEW
        for one, group in zip(shown, groups, strict=True):
            title = (group or GROUPS[-1]) if many else "Options"
            if row := one.get_help_record(ctx):
                sections[title].append(row)
        write_sections(formatter, sections)

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        write_lines(formatter, "Examples", self.examples)


def write_sections(
    formatter: click.HelpFormatter, sections: Mapping[str, Sequence[tuple[str, str]]]
) -> None:
    """Write names and what they mean under headings, all in the same two columns."""
    names = [name for rows in sections.values() for name, _ in rows]
    width = max((len(name) for name in names if len(name) <= _NAME_WIDTH), default=0)
    for title, rows in sections.items():
        if rows:
            with formatter.section(title):
                kept = [(f"{name:<{width}}", text.replace("-", _HYPHEN)) for name, text in rows]
                formatter.write_dl(kept, width)


def write_lines(formatter: click.HelpFormatter, title: str, lines: Sequence[str]) -> None:
    """Write a section of lines to copy, as they are."""
    with formatter.section(title):
        for line in lines:
            formatter.write(f"{' ' * formatter.current_indent}{line}\n")


def command(
    name: str, *, takes_command: bool = False, takes_line: bool = False
) -> Callable[[Callable[..., Any]], Command]:
    """Decorate a function, which takes the `Invocation` and the options, as a command.

    Its docstring is the help, with lines to copy below `Examples:`. It takes the global options
    after its name, too. They are hidden there, so that its help shows only its own. A letter that
    the command has given another meaning keeps that one.
    """

    def decorate(function: Callable[..., Any]) -> Command:
        text, _, examples = cleandoc(function.__doc__ or "").partition("\n\nExamples:\n")
        made = click.command(
            name,
            cls=Command,
            help=text,
            examples=dedent(examples).splitlines(),
            takes_command=takes_command,
            takes_line=takes_line,
        )(click.pass_obj(function))
        taken = {letter for parameter in made.params for letter in parameter.opts}
        for inherited in global_options(hidden=True):
            inherited.opts = [letter for letter in inherited.opts if letter not in taken]
            made.params.append(inherited)
        return made

    return decorate


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
        return [name for title, rows in self._sections.items() if title for name in rows]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in self._table:
            return None
        path = f"{self._path} {cmd_name}".strip()
        module_name, line = self._table[cmd_name]
        if not module_name:
            return self._subgroup(path, line)
        module = import_module(f"jlremote.cli.commands.{module_name}")
        commands = (found for found in vars(module).values() if isinstance(found, Command))
        return next(command for command in commands if command.name == path)

    def _subgroup(self, path: str, line: str) -> LazyGroup:
        return LazyGroup(
            path,
            path=path,
            table={"Commands": self._groups[path]},
            groups=self._groups,
            help=line,
            params=global_options(hidden=True),
            no_args_is_help=path not in _DEFAULTS,
        )

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
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
            raise Usage(f"no such command `{args[0]}`", hint=hint)
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

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the commands under their headings, and then the global options."""
        commands = {
            title: [(name, line) for name, (_, line) in rows.items()]
            for title, rows in self._sections.items()
            if title
        }
        records = [parameter.get_help_record(ctx) for parameter in self.get_params(ctx)]
        write_sections(formatter, commands)
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
