"""Requests: the arguments of a command, as the command line passes them to a workflow."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from jlremote.place.clusters.scheduler import Ranks, Resources
from jlremote.place.runtimes.container_options import (
    FIELDS,
    NO_OPTIONS,
    ContainerOptions,
    check_arguments,
)


@dataclass(frozen=True)
class EngineChoice:
    """The engine of a command that names no session: its name or `auto`, perhaps with `sudo`."""

    runtime: str = "auto"
    sudo: bool = False
    image_folder: str | None = None  # of the host, for images that are files; `None`: jlr's own


ANY_ENGINE = EngineChoice()


@dataclass(frozen=True)
class Scheduled:
    """What a scheduler is asked for, and what its job loads before the command."""

    resources: Resources
    modules: tuple[str, ...] = ()
    ranks: Ranks | None = None  # how its ranks are started, `None` for a command that runs once
    pull_on: str = "login"  # where its image is pulled: on the `login` node or by the `job`
    by_tcp: bool = False  # whether Jupyter listens on a TCP port of its node, not on a socket


@dataclass(frozen=True)
class StartRequest:
    """`jlr start HOST [CONTAINER]`."""

    host: str  # what `ssh HOST` takes
    # the name of the container and session; `None` lets the workflow choose
    container: str | None = None
    # the naming template of a new container: `{name}` stands for the typed name, `{user}` for the
    # user's name on the host
    name_rule: str = "{name}"
    runtime: str = "auto"  # `auto`, an engine (`podman`), or `none`
    sudo: bool = False  # whether the engine is called with `sudo`
    image: str | None = None  # the image of a new container
    image_folder: str | None = None  # the host's folder of images that are files
    options: ContainerOptions = NO_OPTIONS  # the other options of a new container
    # a folder of the host for `/workspace`; `.` has the current folder's name
    workspace: str | None = None
    # as the engine's `--gpus`, and `none`, `auto`, `auto:2`; see `gpus.choice`
    gpus: str | None = None
    share_gpus: bool = False  # whether GPUs that others use may be taken
    wait: float | None = None  # how many seconds to wait for GPUs, `None` for not at all
    local_port: int | None = None  # the exact local TCP port, `None` for any
    ports: tuple[int, ...] = ()  # further TCP ports of the container to forward
    # with runtime `none`: a Python executable or a virtual environment's folder
    python: str | None = None
    conda_env: str | None = None  # with runtime `none`: a conda environment's name or folder
    # seconds without work after which Jupyter ends by itself, 0 for never; `None` for no wish
    idle_stop: int | None = None
    record: bool = True  # whether what cells print is recorded on the host
    allow_open: bool = False  # whether a server without token and password may be forwarded
    as_shared: bool = False  # whether another user's session may be joined
    server: int | None = None  # the port there of the Jupyter server to take, where several run
    scheduled: Scheduled | None = None  # how a cluster's scheduler runs it, `None` for no wish
    # whether the person is told on the desktop of what happens; `None` for as before
    notify: bool | None = None
    cancel_on_interrupt: bool = False  # whether Ctrl-C cancels a job that is waited for


@dataclass(frozen=True)
class RunRequest:
    """`jlr run HOST -- COMMAND`."""

    # where it runs; its `container` is the job's name. Of its options, environment, folder and
    # user apply to any job, the others to a new container
    wanted: StartRequest
    command: tuple[str, ...]
    inside: str | None = None  # the session, or any container of the host, to run it in
    scheduled: Scheduled | None = None  # how a scheduler runs it, `None` for without one
    remove: bool = False  # whether it is deleted once its output and exit code were read
    interactive: bool = False  # whether it gets stdin
    terminal: bool = False  # whether it gets a terminal, and stdin
    detach_keys: str | None = None  # the keys that leave the terminal, as the engine takes them
    detach: bool = False  # whether it begins without anything here that reads its output


@dataclass(frozen=True)
class StopRequest:
    """`jlr stop [SESSION]`: stop or `remove` the container too; with `force` also what works."""

    container: bool = False
    remove: bool = False
    force: bool = False
    yes: bool = False  # whether the person has said yes to what is lost
    again: bool = False  # whether it is started again at once: `jlr restart`

    @property
    def destroys(self) -> bool:
        """Whether it may end or delete more than Jupyter with its idle kernels."""
        return self.container or self.remove or self.force

    @property
    def ends_container(self) -> bool:
        """Whether the container ends, too."""
        return self.container or self.remove

    @property
    def options(self) -> str:
        """Its options as they are typed, each after a space, without `--yes`."""
        given = ("container", "remove", "force")
        return "".join(f" --{name}" for name in given if getattr(self, name))


@dataclass(frozen=True)
class LogRequest:
    """`jlr logs [SESSION]`."""

    follow: bool = False
    tail: int | None = None  # the last lines, `None` for all
    since: int | None = None  # leaves out what is older, as of `times.since`
    container: bool = False  # the log of the container's own program, and not of Jupyter


def container_options(settled: Mapping[str, Any]) -> ContainerOptions:
    """Return the options of a new container, out of options by their long names.

    Raises:
        Usage: an argument for the engine is not allowed.
    """
    check_arguments(settled.get("engine-arguments", ()))
    return ContainerOptions(**{FIELDS[name]: settled[name] for name in FIELDS if name in settled})


def stop_command(host: str, name: str, request: StopRequest) -> str:
    """Return the whole command that stops a session or job with these options."""
    verb = "restart" if request.again else "stop"
    return f"jlr {verb} {shlex.quote(f'{host}/{name}')}{request.options}"
