"""The global options of one call of `jlr`, and the context that it gives a workflow."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import click

from jlremote.cli.screen.terminal import set_colour

if TYPE_CHECKING:
    from jlremote.hosts.context import Context


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

    def made(
        *names: str, callback: Any = _keep, variable: str | None = None, **settings: Any
    ) -> click.Option:
        settings |= {"callback": callback, "envvar": None if hidden else variable}
        return click.Option(names, expose_value=False, hidden=hidden, **settings)

    return [
        made(
            "--ssh-config",
            type=click.Path(exists=True, dir_okay=False),
            metavar="FILE",
            variable="JLR_SSH_CONFIG",
            help="Use this file instead of ~/.ssh/config. [env: JLR_SSH_CONFIG]",
        ),
        made("--verbose", is_flag=True, help="Show each command on the host."),
        made("-q", "--quiet", is_flag=True, help="Show no steps."),
        made(
            "--no-input",
            is_flag=True,
            variable="JLR_NO_INPUT",
            help="Ask nothing: a login that needs an answer fails with exit code 4, and what "
            "ends or deletes work wants `--yes`. [env: JLR_NO_INPUT]",
        ),
        made(
            "--leash",
            callback=_leash,
            metavar="SESSION",
            help="Allow only what an agent may do in this session; refuse all else. "
            "[env: JLR_LEASH]",
        ),
        made(
            "--color",
            callback=lambda _context, _option, value: set_colour(value or "auto"),
            type=click.Choice(("auto", "always", "never")),
            help="Print colours. Default: on a terminal. [env: NO_COLOR, FORCE_COLOR]",
        ),
        made(
            "--remember/--no-remember",
            default=None,
            help="Keep passwords in the keychain. Default: ask once.",
        ),
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
