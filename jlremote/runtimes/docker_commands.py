"""Docker's command lines, as pure functions: tested without a host, shown to whoever asks."""

from __future__ import annotations

import re
from collections.abc import Mapping
from types import MappingProxyType

from jlremote import __version__
from jlremote.runtimes.contract import CREATOR_LABEL, SESSION_LABEL, ContainerSpec

Argv = tuple[str, ...]
NO_LABELS: Mapping[str, str] = MappingProxyType({})


def create_argv(spec: ContainerSpec, labels: Mapping[str, str] = NO_LABELS) -> tuple[str, ...]:
    """Return the command that creates (and does not start) a container.

    The entrypoint is replaced by one that only waits: whatever the image would do by itself,
    the container stays, and Jupyter is started in it afterwards. `--init` reaps what the shells
    of later `exec`s leave behind. Never pulls: a pull may take minutes and is a step of its own.
    """
    options = [
        ("--volume", spec.volumes),
        ("--env", spec.environment),
        ("--workdir", _given(spec.workdir)),
        ("--user", _given(spec.user)),
        ("--shm-size", _given(spec.shm_size)),
        ("--gpus", _given(_gpus(spec.gpus))),
    ]
    flags = [f"{option}={value}" for option, values in options for value in values]
    told = {SESSION_LABEL: spec.name, CREATOR_LABEL: f"jlr/{__version__}"} | dict(labels)
    label_flags = (f"--label={name}={value}" for name, value in told.items())
    wait = ("--entrypoint=sleep", "--", spec.image, "infinity")
    head = ("docker", "create", "--pull=never", "--init", f"--name={spec.name}")
    return (*head, *label_flags, *flags, *wait)


def _gpus(value: str | None) -> str | None:
    """Return the value as docker reads it: a line of CSV, where a comma in a field wants quotes."""
    several = value is not None and re.fullmatch(r"device=[^=\"]*,[^=\"]*", value)
    return f'"{value}"' if several else value


def _given(value: str | None) -> tuple[str, ...]:
    return () if value is None else (value,)


def inspect_argv(name: str) -> Argv:
    """Return the command that tells all about a container."""
    return ("docker", "container", "inspect", name)


def pid_argv(name: str) -> Argv:
    """Return the command that prints the pid on the host of a container's first process."""
    return ("docker", "container", "inspect", "--format={{.State.Pid}}", name)


def start_argv(name: str) -> Argv:
    """Return the command that starts a container."""
    return ("docker", "start", name)


def stop_argv(name: str) -> Argv:
    """Return the command that stops a container."""
    return ("docker", "stop", name)


def remove_argv(name: str) -> Argv:
    """Return the command that stops and removes a container; its named volumes stay."""
    return ("docker", "rm", "--force", name)


def find_argv(label: str, value: str) -> Argv:
    """Return the command that prints the ids of the containers with a label."""
    return ("docker", "ps", "--all", "--quiet", f"--filter=label={label}={value}")


def list_containers_argv() -> Argv:
    """Return the command that prints the names of all containers."""
    return ("docker", "ps", "--all", "--format", "{{.Names}}")


def list_images_argv() -> Argv:
    """Return the command that prints the names of all tagged images."""
    filters = ("--filter", "dangling=false")
    return ("docker", "images", *filters, "--format", "{{.Repository}}:{{.Tag}}")


def logs_argv(name: str, tail: int, *, follow: bool) -> Argv:
    """Return the command that prints what a container's own process said."""
    return ("docker", "logs", f"--tail={tail}", *(("--follow",) if follow else ()), name)
