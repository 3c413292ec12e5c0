"""A session as it is told to a person or a program."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from jlremote.jupyter.api import Kernel
    from jlremote.workflow.forward.port_report import PortReport
    from jlremote.workflow.mounts.known_mounts import MountReport


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
