"""The options of a new container, for every command that may create one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import click

from jlremote.cli.completion import candidates
from jlremote.errors import Usage

# GPUs are for whatever runs there.
_NEW_CONTAINER = (
    *("image", "volume", "workspace", "env", "workdir", "user", "shm_size", "ulimit", "ipc"),
    *("network", "init", "rm", "log_opt", "packages", "engine_arguments"),
)

_OPTIONAL = ("image", "workspace", "workdir", "user", "shm-size", "ipc", "network")
_SHOWN = {"engine_arguments": "-- …", "packages": "--install"}

Function = TypeVar("Function", bound=Callable[..., Any])

_DECLARED = (
    click.option(
        "--image", help="Create the container from this image if there is none of the name."
    ),
    click.option(
        "-v",
        "--volume",
        multiple=True,
        metavar="SOURCE:TARGET[:OPTIONS]",
        help="Mount a folder of the host, which must be there (`~/…` is below your home on it), or "
        "a volume, as the engine's own -v. For more output write `jlr -v COMMAND`.",
    ),
    click.option(
        "-e",
        "--env",
        multiple=True,
        metavar="NAME[=VALUE]",
        help="Set a variable, as the engine's -e.",
    ),
    click.option(
        "--workspace",
        is_flag=False,
        flag_value=".",
        metavar="[=DIR]",
        help="Mount this folder of the host at /workspace, to work in. Without =DIR, or as `.`, it "
        "is what the current folder here shows of the host (`jlr mount`), or else the folder of "
        "its name in your home there.",
    ),
    click.option("-w", "--workdir", metavar="FOLDER", help="Working folder in the container."),
    click.option(
        "-u",
        "--user",
        metavar="USER[:GROUP]",
        help="User in the container. Default: you, with your number on the host, if folders of the "
        "host are mounted, so that files in them are yours and not root's; else the image's own.",
    ),
    click.option("--shm-size", metavar="SIZE", help="Size of /dev/shm, such as 1g."),
    click.option(
        "--ulimit",
        multiple=True,
        metavar="NAME=SOFT[:HARD]",
        help="A limit, such as memlock=-1; `memlock=` takes away what a profile says.",
    ),
    click.option("--ipc", metavar="MODE", help="Whose shared memory: `private`, `host` …"),
    click.option("--network", metavar="NETWORK", help="Which network: `bridge`, `host`, a name."),
    click.option(
        "--init/--no-init",
        default=None,
        help="Whether a small init is the container's first process. Default: it is.",
    ),
    click.option(
        "--rm/--no-rm", default=None, help="Remove the container when it stops, and what is in it."
    ),
    click.option(
        "--log-opt",
        multiple=True,
        metavar="NAME=VALUE",
        help="Bounds of the container's log. Default: max-size=50m; `max-size=` takes it away.",
    ),
    click.option(
        "--install",
        "--packages",
        "packages",
        multiple=True,
        metavar="PACKAGE",
        help="Install a Python package in a new container, such as jupyterlab; may be repeated.",
    ),
    click.option(
        "--gpus",
        metavar="GPUS",
        help="GPUs for a new container: `auto` or `auto:2` takes such as nobody uses, so does `2`; "
        "`0,3`, UUIDs and MIG UUIDs are these, unless somebody uses them; `all`; `none`.",
    ),
    click.option(
        "--share-gpus", is_flag=True, default=None, help="Take GPUs that others use, too."
    ),
    click.option(
        "--profile",
        shell_complete=candidates.profiles,
        help="Take options from [profiles.PROFILE]; `nvidia` is built in.",
    ),
)


def creation_options(function: Function) -> Function:
    """Decorate a command with the options of a new container, to be `settled` together."""
    for declared in reversed(_DECLARED):
        function = declared(function)
    return function


def settled(host: str, options: dict[str, Any]) -> dict[str, Any]:
    """Return the options that flags and settings make together, by their long names.

    Args:
        host: what was typed after `ssh`.
        options: by the names of click's parameters; `None` and `()` say nothing.

    Raises:
        Usage: they cannot be had together.
    """
    from jlremote.storage import settings

    flags = {name.replace("_", "-"): value for name, value in options.items()}
    for name, value in flags.items():
        if isinstance(value, tuple) and "" in value:
            shown = _SHOWN.get(name, f"--{name}")
            raise Usage(
                f"`{shown}` has no value",
                hint="leave it out; a variable of your shell in it may be empty",
            )
    for volume in flags["volume"]:
        if volume.startswith("-"):
            raise Usage(
                f"`{volume}` is no volume",
                hint="`-v` is --volume here, as with docker; for more output: `jlr -v start …`",
            )
    chosen = settings.load().chosen(host, flags)
    # What settings say is taken away by an empty value.
    return {name: value for name, value in chosen.items() if value != "" or name not in _OPTIONAL}


def refuse_creation(options: dict[str, Any], without: str, *but: str) -> None:
    """Refuse options of a new container, given as flags where there is to be none.

    Args:
        options: by the names of click's parameters.
        without: the option by which there is none.
        but: options that mean something there all the same.

    Raises:
        Usage: there are some; names one. What settings say is for the hosts that have containers.
    """
    for name in _NEW_CONTAINER:
        if name not in but and options.get(name) not in (None, ()):
            shown = _SHOWN.get(name, f"--{name.replace('_', '-')}")
            raise Usage(
                f"`{shown}` is for a new container, and with `{without}` there is none",
                hint="leave one of the two out",
            )


def after_dashes(options: dict[str, Any]) -> dict[str, Any]:
    """Return the options with all that stood behind `--` as words for the engine.

    click gives the first of them to CONTAINER if that was left out; no container's name begins
    with a dash.
    """
    words: tuple[str, ...] = options["engine_arguments"]
    container = options.get("container")
    if container and container.startswith("-"):
        return options | {"container": None, "engine_arguments": (container, *words)}
    return options
