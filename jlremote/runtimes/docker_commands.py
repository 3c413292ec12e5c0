"""Docker's command lines, as pure functions: tested without a host, shown to whoever asks."""

from __future__ import annotations

from jlremote import __version__
from jlremote.runtimes.contract import CREATOR_LABEL, SESSION_LABEL, ContainerSpec

Argv = tuple[str, ...]


def create_argv(spec: ContainerSpec) -> tuple[str, ...]:
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
        ("--gpus", _given(spec.gpus)),
    ]
    flags = [f"{option}={value}" for option, values in options for value in values]
    labels = (
        f"--label={SESSION_LABEL}={spec.name}",
        f"--label={CREATOR_LABEL}=jlr/{__version__}",
    )
    wait = ("--entrypoint=sleep", "--", spec.image, "infinity")
    head = ("docker", "create", "--pull=never", "--init", f"--name={spec.name}")
    return (*head, *labels, *flags, *wait)


def _given(value: str | None) -> tuple[str, ...]:
    return () if value is None else (value,)


def inspect_argv(name: str) -> Argv:
    """Return the command that tells all about a container."""
    return ("docker", "container", "inspect", name)


def start_argv(name: str) -> Argv:
    """Return the command that starts a container."""
    return ("docker", "start", name)


def stop_argv(name: str) -> Argv:
    """Return the command that stops a container."""
    return ("docker", "stop", name)


def remove_argv(name: str) -> Argv:
    """Return the command that stops and removes a container; its named volumes stay."""
    return ("docker", "rm", "--force", name)


def pull_argv(image: str) -> Argv:
    """Return the command that pulls an image."""
    return ("docker", "pull", "--quiet", "--", image)


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
