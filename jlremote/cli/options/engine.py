"""The options that choose an engine: `--runtime` and `--sudo`."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import TYPE_CHECKING, Any

import click

from jlremote.cli.command import Function, option
from jlremote.storage.options import RUNTIMES

if TYPE_CHECKING:
    from jlremote.workflow.host.requests import EngineChoice


_ENGINES = [name for name in RUNTIMES if name != "none"]
_LISTED = ", ".join(f"`{name}`" for name in _ENGINES)

_SUDO = option(
    "Session",
    "--sudo/--no-sudo",
    default=None,
    help="Run the engine with `sudo`; its password is asked for once.",
)


def runtime_options(function: Function) -> Function:
    """Add the options that say what a session runs in."""
    add = option(
        "Session",
        "--runtime",
        type=click.Choice(RUNTIMES),
        metavar="RUNTIME",
        help=f"{_LISTED}, or `none`: no container. Default: auto, the session's own engine, else "
        "docker or podman; nvidia-docker where docker has no `--gpus`.",
    )
    return add(_SUDO(function))


def engine_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options that choose a host's engine; the command gets it as `engine`."""
    add = click.option(
        "--runtime",
        type=click.Choice(_ENGINES),
        metavar="RUNTIME",
        help=f"{_LISTED}. Default: auto, the engine of the host's latest session, else docker or "
        "podman.",
    )

    @wraps(function)
    def choosing(
        *arguments: Any, host: str, runtime: str | None, sudo: bool | None, **options: Any
    ) -> Any:
        return function(*arguments, host=host, engine=_chosen(host, runtime, sudo), **options)

    return add(_SUDO(choosing))


def _chosen(host: str, runtime: str | None, sudo: bool | None) -> EngineChoice:
    """Return the engine that flags and settings choose for a host."""
    from jlremote.storage import settings
    from jlremote.workflow.host.requests import EngineChoice

    chosen = settings.load().chosen(host, {"runtime": runtime, "sudo": sudo})
    return EngineChoice(str(chosen.get("runtime", "auto")), bool(chosen.get("sudo", False)))
