"""A session as it is told to a person or a program."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any


def utc(seconds: float) -> str:
    """Return seconds since the epoch as ISO 8601 in UTC."""
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="milliseconds")


@dataclass(frozen=True)
class Kernel:
    """A running kernel.

    Attributes:
        notebook: path of its notebook below the server's root, or the kernel's own name.
        state: Jupyter's word: `idle`, `busy`, `starting`, …
        last_activity: ISO 8601 in UTC, as Jupyter gives it.
    """

    notebook: str
    state: str
    last_activity: str


@dataclass(frozen=True)
class ContainerReport:
    """A container of a host, whoever has made it.

    Attributes:
        name: its name.
        id: the engine's full id.
        image: the image as the engine names it.
        status: the engine's word: `running`, `paused`, `exited`, `created`, ….
        jupyter: whether a Jupyter server runs in it.
        session: whether jlr has made it, or has launched its Jupyter.
        owner: whose it seems to be: who has made it with jlr, else the user of its processes, or
            whose home folder it sees; `None` where nothing tells.
        gpus: the GPUs as the engine was asked for them, `None` for none.
    """

    name: str
    id: str
    image: str | None
    status: str
    jupyter: bool
    session: bool
    owner: str | None
    gpus: str | None

    def to_json(self) -> dict[str, Any]:
        """Return the stable form that `--json` prints."""
        return dict(vars(self))


@dataclass(frozen=True)
class MountReport:
    """A mount as it is right now.

    Attributes:
        local: absolute path of the folder here.
        host: what was typed after `ssh`.
        remote: absolute path of the folder on the host.
        session: the session's name.
        read_only: whether nothing can be changed through it.
        state: `up`, the state of a link that is not, `dead` or `unmounted`.
        detail: one sentence that says why, where the state is not `up`.
    """

    local: str
    host: str
    remote: str
    session: str
    read_only: bool
    state: str
    detail: str | None = None

    def to_json(self) -> dict[str, Any]:
        """Return the stable form that `--json` prints."""
        return dict(vars(self))


@dataclass(frozen=True)
class PortReport:
    """The forward of a further port of a session as it is right now.

    Attributes:
        port: TCP port in the container.
        local_port: TCP port on 127.0.0.1.
        state: `up`, `closed` (nothing listens there), `taken` (by others), or a session's state.
        since: ISO 8601 in UTC, `None` where nobody can tell.
        detail: one sentence that says why, where the state is not `up`.
    """

    port: int
    local_port: int
    state: str
    since: str | None = None
    detail: str | None = None

    @property
    def url(self) -> str:
        """The local address."""
        return f"http://127.0.0.1:{self.local_port}/"

    def to_json(self) -> dict[str, Any]:
        """Return the stable form that `--json` prints."""
        return dict(vars(self))


@dataclass(frozen=True)
class SessionReport:
    """A session as it is right now.

    Attributes:
        name: the session's name, the container's where there is one.
        host: what was typed after `ssh`.
        container: the container's name, `None` with runtime `none`.
        runtime: `docker` or `none`.
        state: `up`, `reconnecting`, `needs-auth`, `down`, `jupyter-dead`, `container-gone`,
            `stopped`, `idle-stopped`; `running` for one that is not forwarded here; ….
        since: since when it is in that state, ISO 8601 in UTC; `None` where nobody can tell.
        detail: one sentence that says why, where the state is not `up`.
        access: what Jupyter asks for: `token`, `password` or `open` (nothing, so that whoever
            reaches its port has it); `None` when nobody could be asked.
        idle_stop: seconds without work after which kernels and then Jupyter end by themselves,
            `None` for never or where nobody can tell.
        url: the address to open, with the token where one is known.
        local_port: TCP port on 127.0.0.1.
        image: the container's image as the engine names it.
        gpus: the GPUs as the engine was asked for them (`all`, `0,2`, …), `None` for none.
        kernels: what runs, `None` when nobody could be asked.
        mounts: what of it is mounted on this machine.
        ports: its further ports.
        started_here: whether this very call launched the Jupyter server.
    """

    name: str
    host: str
    container: str | None
    runtime: str
    state: str
    url: str | None
    local_port: int | None
    since: str | None = None
    detail: str | None = None
    image: str | None = None
    gpus: str | None = None
    kernels: tuple[Kernel, ...] | None = None
    mounts: tuple[MountReport, ...] = ()
    ports: tuple[PortReport, ...] = ()
    access: str | None = None
    idle_stop: int | None = None
    started_here: bool = False

    def to_json(self) -> dict[str, Any]:
        """Return the stable form that `--json` prints."""
        fields = ("name", "host", "container", "runtime", "state", "since", "detail", "url")
        kernels = None if self.kernels is None else [vars(kernel) for kernel in self.kernels]
        facts = {field: getattr(self, field) for field in (*fields, "local_port")}
        asked = {"image": self.image, "gpus": self.gpus, "kernels": kernels}
        rules = {"access": self.access, "idle_stop": self.idle_stop}
        mounts = [mount.to_json() for mount in self.mounts]
        ports = [port.to_json() for port in self.ports]
        return facts | asked | rules | {"mounts": mounts, "ports": ports}
