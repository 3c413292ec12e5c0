"""Arguments and options that several commands share."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import click

from jlremote.cli.command import Function, option
from jlremote.cli.completion import candidates


class Port(click.ParamType[int]):
    """A TCP port."""

    name = "port"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        """Return the number; a usage error for anything else."""
        if not str(value).isdecimal() or not 1 <= int(value) <= 65535:
            self.fail(f"`{value}` is not a port (1-65535)", param, ctx)
        return int(value)


PORT = Port()


def host_argument(function: Function) -> Function:
    """Add HOST."""
    return click.argument("host", shell_complete=candidates.hosts)(function)


def optional_host_argument(function: Function) -> Function:
    """Add HOST, which may be left out."""
    return click.argument("host", required=False, shell_complete=candidates.hosts)(function)


def session_argument(function: Function) -> Function:
    """Add SESSION, which may be left out."""
    return click.argument("session", required=False, shell_complete=candidates.sessions)(function)


def json_option(text: str) -> Callable[[Function], Function]:
    """Add `--json`, which the command gets as `as_json`."""
    return click.option("--json", "as_json", is_flag=True, help=text)


def image_json_option(function: Function) -> Function:
    """Add `--json` of a command that tells of one image."""
    return json_option("Print the image as a JSON object.")(function)


def python_options(function: Function) -> Function:
    """Add the options that say which Python a session without a container uses."""
    for names, metavar, meant in (
        ("--conda-env", "NAME", "a conda environment"),
        ("--python", "PATH", "a Python or a virtual environment"),
    ):
        text = f"With --runtime none: {meant}."
        function = option("Jupyter", names, metavar=metavar, help=text)(function)
    return function
