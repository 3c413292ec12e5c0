"""Click's commands with our additions: options in groups, examples, a page of help, and the call.

`Invocation` has the global options of one call, and makes the context that it gives a workflow.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import wraps
from inspect import cleandoc, signature
from textwrap import dedent
from traceback import walk_tb
from typing import TYPE_CHECKING, Any, TypeVar

import click

from jlremote.cli.screen.terminal import AS_JSON, set_colour
from jlremote.errors import Usage
from jlremote.text import without_controls

if TYPE_CHECKING:
    from jlremote.hosts.context import Context

# The headings of a command's options, in the order of its help.
GROUPS = ("Session", "Container", "GPUs", "Cluster", "Jupyter", "This machine", "Output")

_FEW = 8
_MANY = 11  # options; more do not fit on the page of `-h`
_EXAMPLES = 3  # on the page of `-h`
_SEVERAL_LINES = ("--env", "--build-arg", "--parameter", "-c")  # their values may have them
_SCHEDULER = "--slurm"  # beside which `-h` shows the options of a cluster
# A name that is longer gets its line of the help below it, also at 80 columns.
_NAME_WIDTH = 26
# Stands for a hyphen while click breaks lines, which it would do in the middle of `--dry-run`.
_HYPHEN = "\N{NON-BREAKING HYPHEN}"
_TYPED = "jlremote.typed"

Function = TypeVar("Function", bound=Callable[..., Any])


@dataclass
class Invocation:
    """The values of the global options, which may stand before or after the command's name."""

    ssh_config: str | None = None  # ssh's `-F`
    verbose: bool = False
    quiet: bool = False
    no_input: bool = False
    remember: bool | None = None  # keep correct passwords in the keychain; `None` asks once

    def context(self, *, silent: bool = False, lasting: bool = True) -> Context:
        """Return the context of a workflow; `silent` and `lasting` are those of `Steps`."""
        from pathlib import Path

        from jlremote.cli.keyboard import prompts
        from jlremote.cli.screen.progress import Steps
        from jlremote.cli.screen.terminal import as_json
        from jlremote.hosts.context import Context

        silent = silent or self.quiet or as_json()
        steps = Steps(silent=silent, verbose=self.verbose, lasting=lasting)
        asker = prompts.NO_INPUT if self.no_input else prompts.Person(steps.paused, self.remember)
        path = Path(self.ssh_config).absolute() if self.ssh_config else None
        return Context(path, asker, steps, _restore)


def global_options(*, hidden: bool = False) -> list[click.Option]:
    """Return new options, whose values go to the call's `Invocation`."""

    def made(names: str, text: str, callback: Any = _keep, **settings: Any) -> click.Option:
        kept = {"help": text, "callback": callback, "expose_value": False, "hidden": hidden}
        return click.Option(names.split(), default=None, **kept, **settings)

    file = {"type": click.Path(exists=True, dir_okay=False), "metavar": "FILE"}
    file["envvar"] = None if hidden else "JLR_SSH_CONFIG"
    return [
        made(
            "--ssh-config", "Use this file instead of ~/.ssh/config. [env: JLR_SSH_CONFIG]", **file
        ),
        made("--verbose", "Show each command on the host.", is_flag=True),
        made("-q --quiet", "Show no steps.", is_flag=True),
        made(
            "--no-input",
            "Ask nothing: a login that needs an answer fails with exit code 4, and what ends or "
            "deletes work wants `--yes`. [env: JLR_NO_INPUT]",
            is_flag=True,
            envvar=None if hidden else "JLR_NO_INPUT",
        ),
        made(
            "--leash",
            "Allow only what an agent may do in this session; refuse all else. [env: JLR_LEASH]",
            _leash,
            metavar="SESSION",
        ),
        made(
            "--color",
            "Print colours. Default: on a terminal. [env: NO_COLOR, FORCE_COLOR]",
            lambda _context, _option, value: set_colour(value or "auto"),
            type=click.Choice(("auto", "always", "never")),
        ),
        made("--remember/--no-remember", "Keep passwords in the keychain. Default: ask once."),
    ]


def _restore(*held: Any) -> None:
    # Its imports take 22 ms, which only a new link needs.
    from jlremote.sessions.open import restore

    restore(*held)


def _leash(context: click.Context, _option: click.Parameter, value: str | None) -> None:
    if value is not None and not context.resilient_parsing:
        from jlremote.laptop.typed_place import take_leash

        take_leash(value)


def _keep(context: click.Context, option: click.Parameter, value: Any) -> None:
    # An option with a `--no-…` form is None until it is given; a flag is False.
    if value or (option.secondary_opts and value is not None):
        setattr(context.ensure_object(Invocation), str(option.name), value)


class HelpFormatter(click.HelpFormatter):
    """A formatter of help that breaks lines at spaces only."""

    def write_text(self, text: str) -> None:
        super().write_text(text.replace("-", _HYPHEN))

    def write(self, string: str) -> None:
        super().write(string.replace(_HYPHEN, "-"))


class CommandContext(click.Context):
    """Click's context, whose help is written by our formatter."""

    formatter_class = HelpFormatter


def keep_words(ctx: click.Context, words: Sequence[str]) -> None:
    """Keep the words of a command's line, up to `--`: `--help` wants all, and `-h` a page."""
    ctx.meta[_TYPED] = words[: words.index("--")] if "--" in words else [*words]


def is_typed(ctx: click.Context, option: str) -> bool:
    """Return whether a command's line has this option, as far as help may know it."""
    return option in ctx.meta.get(_TYPED, ())


def usage_line(ctx: click.Context) -> str:
    """Return how the command is called, in one line, without options."""
    pieces = ctx.command.collect_usage_pieces(ctx)[1:]
    return " ".join((ctx.command_path, *pieces)).replace(_HYPHEN, "-")


def write_page(
    ctx: click.Context,
    formatter: click.HelpFormatter,
    sections: Mapping[str, Sequence[tuple[str, str]]],
    examples: Sequence[str],
    closing: str,
) -> None:
    """Write the help of `-h`: usage, the first sentence, some options, some examples."""
    ctx.command.format_usage(ctx, formatter)
    formatter.write_paragraph()
    with formatter.indentation():
        text = " ".join((ctx.command.help or "").partition("\n\n")[0].split())
        formatter.write_text(text.partition(". ")[0].removesuffix(".") + ".")
    write_sections(formatter, sections)
    if examples:
        write_lines(formatter, "Examples", examples)
    formatter.write_paragraph()
    formatter.write_text(closing)


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


class Option(click.Option):
    """An option under a heading of `GROUPS`, or none; if `common`, it is in `-h`, too."""

    def __init__(
        self, *declarations: Any, group: str = "", common: bool = False, **settings: Any
    ) -> None:
        super().__init__(*declarations, **settings)
        self.group, self.common = group, common


def option(
    names: str, text: str, *, group: str = "", common: bool = False, **settings: Any
) -> Callable[[Function], Function]:
    """Decorate a function with an option; `text` is its help, `settings` are as for `click.option`.

    `names` are separated by spaces: the option's own, the parameter's if that is another one, and
    the metavar, as `-v --volume SOURCE:TARGET`. Without a metavar or a type it is a flag; one with
    a `--no-…` form is `None` until it is given. With a metavar alone it takes one line of text, in
    the form that hosts take, which is empty only to drop what the settings say.
    """
    words = names.split()
    if not words[-1].startswith("-") and not words[-1].islower():
        settings["metavar"] = words.pop()
        settings.setdefault("type", _text_of(*(word for word in words if word[:1] == "-")))
        if "flag_value" in settings:
            settings["is_flag"] = False  # the value may be left out
    elif "/" in names:
        settings["default"] = None
    elif not settings.keys() & {"type", "flag_value"}:
        settings["is_flag"] = True
    return click.option(*words, cls=Option, group=group, common=common, help=text, **settings)


def _text_of(*names: str) -> Callable[[Any], str]:
    option = next((name for name in names if name.startswith("--")), names[0])

    def converted(value: Any) -> str:
        from jlremote.laptop.settings.options import DROPPED_IF_EMPTY, check_form

        name, text = names[-1].lstrip("-"), str(value)
        if not text.strip() and not (name in DROPPED_IF_EMPTY and not text):
            hint = "leave it out; a shell variable in it may be empty"
            raise Usage(f"`{option}` has no value", hint=hint)
        if option not in _SEVERAL_LINES and ("\n" in text or without_controls(text) != text):
            raise Usage(f"`{option}` has control characters", hint="write it in one line")
        return check_form(name, text, f"`{option}`") if text else ""

    return converted


def options(*declared: Callable[[Any], Any]) -> Callable[[Function], Function]:
    """Return a decorator that adds several options, in the order of the help."""

    def add(function: Function) -> Function:
        for one in reversed(declared):
            function = one(function)
        return function

    return add


class Command(click.Command):
    """A command whose help has its options in groups, and then examples."""

    context_class = CommandContext
    examples: Sequence[str] = ()  # lines to copy; what follows a `#` is a comment
    takes_command = False  # what follows `--` is a command for the host, `command`
    takes_line = False  # what follows its argument `where` is a line for the shell there, as of ssh

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        keep_words(ctx, args)
        at = args.index("--") if self.takes_command and "--" in args else len(args)
        words = args[at + 1 :]
        try:
            if self.takes_line:
                parser = self.make_parser(ctx)
                parser.allow_interspersed_args = False
                _, behind, _ = parser.parse_args(args[:at])
                parsed, behind, _ = parser.parse_args(behind)
                if isinstance(parsed.get("where"), str):
                    at -= len(behind) + 1
                    words = ["sh", "-c", " ".join(args[at:])]
            rest = super().parse_args(ctx, args[:at])
        except click.UsageError as failure:
            failure.ctx = failure.ctx or ctx  # click tells not always whose option has no value
            raise
        except Usage as failure:
            failure.usage = usage_line(ctx)
            raise
        if self.takes_command:
            ctx.params["command"] = tuple(words)
        return rest

    def collect_usage_pieces(self, ctx: click.Context) -> list[str]:
        pieces = super().collect_usage_pieces(ctx)
        if self.takes_command:
            pieces.append("[LINE|-- COMMAND...]" if self.takes_line else "[-- COMMAND...]")
        return [piece.replace("-", _HYPHEN) for piece in pieces]

    def invoke(self, ctx: click.Context) -> Any:
        if "JLR_LEASH" in os.environ:
            from jlremote.cli import leash

            leash.hold(ctx)
        try:
            return super().invoke(ctx)
        except Usage as failure:
            *_, (frame, _) = walk_tb(failure.__traceback__)
            if str(frame.f_globals["__name__"]).startswith("jlremote.cli"):
                failure.usage = usage_line(ctx)  # it is not of a setting, or of what a host has
            raise

    def format_help(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        if is_typed(ctx, "--help"):
            super().format_help(ctx, formatter)
            return
        declared = [one for one in self.params if isinstance(one, Option)]
        title, many = "Options", len(declared) > _MANY
        shown = [one for one in declared if one.common or not many]
        examples = [line for line in self.examples if len(line) < formatter.width]
        if is_typed(ctx, _SCHEDULER):
            title = "Cluster"
            shown = [one for one in declared if one.group == title]
            examples = [line for line in examples if _SCHEDULER in line]
        rows = [row for one in shown if (row := one.get_help_record(ctx))]
        what = f"shows all {len(declared)} options" if len(rows) < len(declared) else "says more"
        closing = f"`{ctx.command_path} --help` {what}"
        write_page(ctx, formatter, {title: rows}, examples[:_EXAMPLES], closing)

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


def keep_json(context: click.Context, _option: click.Parameter, value: bool) -> bool:
    """Keep for `terminal.as_json` whether an option for JSON is given, and return its value."""
    context.meta[AS_JSON] = value or context.meta.get(AS_JSON, False)
    return value


def command(
    name: str, *, json: str = "", takes_command: bool = False, takes_line: bool = False
) -> Callable[[Callable[..., Any]], Command]:
    """Decorate a function as a command: it takes the `Invocation` or its `context`, and options.

    Its docstring is the help, with lines to copy below `Examples:`. `json` is the help of `--json`,
    if it has that. It takes the global options after its name, too; they are hidden there. A letter
    that the command has given another meaning keeps that one.
    """

    def decorate(function: Callable[..., Any]) -> Command:
        text, _, examples = cleandoc(function.__doc__ or "").partition("\n\nExamples:\n")
        first = next(iter(signature(function).parameters))

        @wraps(function)
        def called(invocation: Invocation, /, **options: Any) -> Any:
            return function(invocation.context() if first == "context" else invocation, **options)

        made = click.command(name, cls=Command, help=text)(click.pass_obj(called))
        if json:
            kept: dict[str, Any] = {"expose_value": False, "callback": keep_json}
            made.params.append(Option(["--json"], is_flag=True, help=json, **kept))
        made.examples = dedent(examples).splitlines()
        made.takes_command, made.takes_line = takes_command, takes_line
        taken = {letter for parameter in made.params for letter in parameter.opts}
        for inherited in global_options(hidden=True):
            inherited.opts = [letter for letter in inherited.opts if letter not in taken]
            made.params.append(inherited)
        return made

    return decorate
