"""What the host tells about itself, before anybody judges it."""

from __future__ import annotations

from dataclasses import dataclass

from jlremote.errors import JlrError
from jlremote.gpus.inventory import Inventory
from jlremote.gpus.snapshot import CannotAsk
from jlremote.runtimes.docker.old_docker import Other
from jlremote.runtimes.engine.engine import Engine
from jlremote.runtimes.engine.engine_errors import EngineUnusable


@dataclass(frozen=True)
class DiskSpace:
    """A place on the host's disks.

    Attributes:
        folder: where.
        complaint: why nothing can be written there, `None` if something can.
        free_bytes: what is left, `None` where nobody can tell.
        free_files: how many files more it takes, `None` where that has no limit.
    """

    folder: str
    complaint: str | None = None
    free_bytes: int | None = None
    free_files: int | None = None


@dataclass(frozen=True)
class ImageFacts:
    """An image as the host has it.

    Attributes:
        name: as it was asked for.
        found: whether it is there.
        architecture: what it is made for, in Go's word: `amd64`.
        complaint: why the engine does not tell, `None` if it does.
    """

    name: str
    found: bool
    architecture: str = ""
    complaint: str | None = None


@dataclass(frozen=True)
class HostFacts:
    """What the host tells about itself.

    Attributes:
        host: what was typed after `ssh`.
        user: who we are there.
        system: its distribution, in its own words.
        distribution: `ID` and then `ID_LIKE` of its `os-release`.
        machine: what `uname -m` says.
        home: the home folder.
        temporary: `/tmp`.
        kills_at_logout: whether systemd ends a user's processes when his last login ends, and he
            does not linger.
        engine: the engine that is meant, `None` for none (runtime `none`).
        engine_version: what its command calls itself, `None` if there is no such command.
        engine_error: why it cannot be used.
        gpus_by: by which engine a new container is given GPUs, and why, where that is another.
        others: why each that would have been taken before it cannot be used, or any at all.
        storage: where it keeps images, `None` where it does not tell.
        hardware: how many NVIDIA GPUs are on the bus.
        driver: what the loaded driver calls itself, empty for none.
        gpus: the GPUs as `nvidia-smi` tells them, or why it does not.
        toolkit: what there is of NVIDIA's container toolkit: its programs, and the files that
            describe GPUs to podman.
        image: the image that a container would be created from, `None` for none.
        image_needed: whether one is to be created, as no session runs.
    """

    host: str
    user: str = "?"
    system: str = ""
    distribution: tuple[str, ...] = ()
    machine: str = ""
    home: DiskSpace = DiskSpace("~")
    temporary: DiskSpace = DiskSpace("/tmp")  # noqa: S108  # it is a place to look at
    kills_at_logout: bool = False
    engine: Engine | None = None
    engine_version: str | None = None
    engine_error: JlrError | None = None
    gpus_by: Other | None = None
    others: tuple[EngineUnusable, ...] = ()
    storage: DiskSpace | None = None
    hardware: int = 0
    driver: str = ""
    gpus: Inventory | CannotAsk | None = None
    toolkit: tuple[str, ...] = ()
    image: ImageFacts | None = None
    image_needed: bool = True
