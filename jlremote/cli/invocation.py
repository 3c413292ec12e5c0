"""What one call of `jlr` was told by its global options, and what it gives a workflow."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from jlremote.workflow.host.context import Context


@dataclass
class Invocation:
    """The global options; they may stand before or after the command's name.

    Attributes:
        ssh_config: ssh's `-F`.
        verbose: show each remote command.
        quiet: show no steps.
        no_input: never ask.
        remember: keep secrets that were right in the keychain; `None` asks once.
    """

    ssh_config: str | None = None
    verbose: bool = False
    quiet: bool = False
    no_input: bool = False
    remember: bool | None = None

    def context(self, *, silent: bool = False, lasting: bool = True) -> Context:
        """Return what a workflow needs; `silent` as for `--json`, `lasting` as of `Steps`."""
        from pathlib import Path

        from jlremote.cli.screen import prompts
        from jlremote.cli.screen.progress import Steps
        from jlremote.workflow.host.context import Context

        steps = Steps(silent=silent or self.quiet, verbose=self.verbose, lasting=lasting)
        asker = prompts.no_input() if self.no_input else prompts.Person(steps.paused, self.remember)
        path = Path(self.ssh_config).absolute() if self.ssh_config else None
        return Context(path, asker, steps, _restore)


def global_options(*, hidden: bool = False) -> list[click.Option]:
    """Return new options that are kept in the call's `Invocation`."""
    kept: dict[str, Any] = {"expose_value": False, "callback": _keep, "hidden": hidden}
    flag: dict[str, Any] = kept | {"is_flag": True}
    return [
        click.Option(
            ["--ssh-config"],
            type=click.Path(exists=True, dir_okay=False),
            metavar="FILE",
            envvar=None if hidden else "JLR_SSH_CONFIG",
            help="Read this file instead of ~/.ssh/config, as `ssh -F`. [env: JLR_SSH_CONFIG]",
            **kept,
        ),
        click.Option(
            ["-v", "--verbose"],
            help="Show each command that is run on the host.",
            **flag,
        ),
        click.Option(["-q", "--quiet"], help="Show no steps.", **flag),
        click.Option(
            ["--no-input"],
            envvar=None if hidden else "JLR_NO_INPUT",
            help="Never ask; fail with exit code 4 instead. [env: JLR_NO_INPUT]",
            **flag,
        ),
        click.Option(
            ["--remember/--no-remember"],
            help="Keep passwords and passphrases in the keychain, or do not; else it asks once.",
            **kept | {"default": None},
        ),
    ]


class Command(click.Command):
    """A command that closes its help with examples.

    Args:
        examples: lines that a person can paste; what follows a `#` is a comment.
        takes_command: whether what follows `--` is a command for the host, `command`.
    """

    def __init__(
        self,
        *arguments: Any,
        examples: Sequence[str],
        takes_command: bool = False,
        **settings: Any,
    ) -> None:
        super().__init__(*arguments, **settings)
        self.examples = examples
        self.takes_command = takes_command

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Keep what follows `--` away from click, which would take it for arguments."""
        if not self.takes_command:
            return super().parse_args(ctx, args)
        at = args.index("--") if "--" in args else len(args)
        rest = super().parse_args(ctx, args[:at])
        ctx.params["command"] = tuple(args[at + 1 :])
        return rest

    def collect_usage_pieces(self, ctx: click.Context) -> list[str]:
        """Show where the command stands."""
        command = ["[-- COMMAND...]"] if self.takes_command else []
        return super().collect_usage_pieces(ctx) + command

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the examples into the help."""
        write_lines(formatter, "Examples", self.examples)


def write_lines(formatter: click.HelpFormatter, title: str, lines: Sequence[str]) -> None:
    """Write a section of lines that must not be wrapped."""
    with formatter.section(title):
        for line in lines:
            formatter.write(f"{'':{formatter.current_indent}}{line}\n")


def command(
    name: str, *, examples: Sequence[str], takes_command: bool = False
) -> Callable[[Callable[..., Any]], Command]:
    """Decorate a function as a command that also takes the global options after its name.

    They are hidden there, so that its help shows what is its own. A letter that the command has
    given another meaning keeps that one.
    """

    def decorate(function: Callable[..., Any]) -> Command:
        settings = {"examples": examples, "takes_command": takes_command}
        made = click.command(name, cls=Command, **settings)(function)
        taken = {letter for option in made.params for letter in option.opts}
        for option in global_options(hidden=True):
            option.opts = [letter for letter in option.opts if letter not in taken]
            made.params.append(option)
        return made

    return decorate


def _restore(*held: Any) -> None:
    # Its imports take 22 ms, which only a new link shall cost.
    from jlremote.workflow.session.restore import restore

    restore(*held)


def _keep(context: click.Context, option: click.Parameter, value: Any) -> None:
    # An option with a `--no-…` form is None until it is given; a flag is False.
    if value or (option.secondary_opts and value is not None):
        setattr(context.ensure_object(Invocation), str(option.name), value)
