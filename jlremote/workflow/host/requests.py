"""What a person asks for, as the command line hands it to a workflow."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from jlremote.runtimes.options.container_options import (
    FIELDS,
    NO_OPTIONS,
    ContainerOptions,
    check_arguments,
)


@dataclass(frozen=True)
class EngineChoice:
    """Which engine of a host a command means that speaks of no session.

    Attributes:
        runtime: `auto`, or an engine such as `podman`.
        sudo: whether it is to be driven by `sudo`.
    """

    runtime: str = "auto"
    sudo: bool = False


ANY_ENGINE = EngineChoice()


@dataclass(frozen=True)
class StartRequest:
    """`jlr start HOST [CONTAINER]`.

    Attributes:
        host: whatever `ssh HOST` takes.
        container: the container's (and session's) name; `None` lets the workflow choose.
        name_rule: what a new container is called; `{name}` is the container's name as it was typed,
            `{user}` the user's on the host.
        runtime: `auto`, an engine such as `podman`, or `none`.
        sudo: whether the engine is to be driven by `sudo`.
        image: image to create the container from, if there is no such container.
        options: what else a new container is to be.
        workspace: a folder of the host for `/workspace`; `.` is the current folder's namesake.
        gpus: as the engine's `--gpus`, and `none`, `auto`, `auto:2`; see `gpus.request`.
        share_gpus: whether others may be on them.
        local_port: the exact local TCP port, `None` for any.
        ports: further TCP ports of the container to forward.
        python: with runtime `none`: a Python executable or a virtual environment's folder.
        conda_env: with runtime `none`: a conda environment's name or folder.
        idle_stop: seconds without work after which Jupyter ends by itself, 0 for never; `None`
            says nothing of it.
        allow_open: whether a server may be forwarded that lets everybody in.
    """

    host: str
    container: str | None = None
    name_rule: str = "{name}"
    runtime: str = "auto"
    sudo: bool = False
    image: str | None = None
    options: ContainerOptions = NO_OPTIONS
    workspace: str | None = None
    gpus: str | None = None
    share_gpus: bool = False
    local_port: int | None = None
    ports: tuple[int, ...] = ()
    python: str | None = None
    conda_env: str | None = None
    idle_stop: int | None = None
    allow_open: bool = False


@dataclass(frozen=True)
class RunRequest:
    """`jlr run HOST -- COMMAND`.

    Attributes:
        host: whatever `ssh HOST` takes.
        command: what is to run.
        name: what the job is to be called; `None` lets us choose.
        name_rule: what its container is called, see `StartRequest`.
        inside: the session, or any container of the host, that it is to run in.
        runtime: `auto`, an engine, or `none`.
        sudo: whether the engine is to be driven by `sudo`.
        image: of the container that is made for it.
        workspace: see `StartRequest`.
        options: what else that is to be; of these, any job takes environment, folder and user.
        gpus: see `StartRequest`.
        share_gpus: whether others may be on them.
    """

    host: str
    command: tuple[str, ...]
    name: str | None = None
    name_rule: str = "{name}"
    inside: str | None = None
    runtime: str = "auto"
    sudo: bool = False
    image: str | None = None
    workspace: str | None = None
    options: ContainerOptions = NO_OPTIONS
    gpus: str | None = None
    share_gpus: bool = False


@dataclass(frozen=True)
class StopRequest:
    """`jlr stop [SESSION]`: how far to go.

    Attributes:
        container: stop the container too.
        remove: stop the container and remove it.
        force: even when kernels are busy.
    """

    container: bool = False
    remove: bool = False
    force: bool = False


def container_options(settled: Mapping[str, Any]) -> ContainerOptions:
    """Return what a new container is to be, out of options by their long names.

    Raises:
        Usage: words that are meant for the engine cannot be.
    """
    check_arguments(settled.get("engine-arguments", ()))
    return ContainerOptions(**{FIELDS[name]: settled[name] for name in FIELDS if name in settled})
