"""Which engine a command is to use: `--runtime` and `--sudo`."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import TYPE_CHECKING, Any, TypeVar

import click

from jlremote.storage.options import RUNTIMES

if TYPE_CHECKING:
    from jlremote.workflow.host.requests import EngineChoice

Function = TypeVar("Function", bound=Callable[..., Any])

_SUDO = click.option(
    "--sudo/--no-sudo",
    default=None,
    help="Run the engine by `sudo` on the host; its password is asked for once.",
)


def runtime_options(function: Function) -> Function:
    """Add the options that say where a session runs."""
    option = click.option(
        "--runtime",
        type=click.Choice(RUNTIMES),
        help="What runs it there; `none` is without a container. Default: auto, the session's own, "
        "or else the first that works of docker and podman; where GPUs are wanted of a docker that "
        "has no `--gpus`, nvidia-docker.",
    )
    return option(_SUDO(function))


def engine_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options that say which engine is meant on a host; the command gets it as `engine`."""
    option = click.option(
        "--runtime",
        type=click.Choice([name for name in RUNTIMES if name != "none"]),
        help="The engine. Default: auto, that of the host's latest session, or else the first that "
        "works of docker and podman.",
    )

    @wraps(function)
    def choosing(
        *arguments: Any, host: str, runtime: str | None, sudo: bool | None, **options: Any
    ) -> Any:
        return function(*arguments, host=host, engine=_chosen(host, runtime, sudo), **options)

    return option(_SUDO(choosing))


def _chosen(host: str, runtime: str | None, sudo: bool | None) -> EngineChoice:
    """Return which engine flags and settings mean on a host."""
    from jlremote.storage import settings
    from jlremote.workflow.host.requests import EngineChoice

    chosen = settings.load().chosen(host, {"runtime": runtime, "sudo": sudo})
    return EngineChoice(str(chosen.get("runtime", "auto")), bool(chosen.get("sudo", False)))
