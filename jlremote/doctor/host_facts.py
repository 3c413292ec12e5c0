"""Facts about a host, before they are judged."""

from __future__ import annotations

from dataclasses import dataclass

from jlremote.errors import JlrError
from jlremote.gpus.inventory import Inventory
from jlremote.gpus.snapshot import CannotAsk
from jlremote.runtimes.docker.old_docker import OtherWay
from jlremote.runtimes.engine.engine import Engine
from jlremote.runtimes.engine.engine_errors import EngineUnusable


@dataclass(frozen=True)
class DiskSpace:
    """A folder on the host's disks, with the space that is left there.

    Attributes:
        folder: its path.
        complaint: why nothing can be written there, `None` if it can.
        free_bytes: the free space, `None` if unknown.
        free_files: how many more files it takes, `None` if there is no limit.
    """

    folder: str
    complaint: str | None = None
    free_bytes: int | None = None
    free_files: int | None = None


@dataclass(frozen=True)
class ImageFacts:
    """An image on the host.

    Attributes:
        name: as it was typed.
        found: whether the host has it.
        architecture: Go's name of the one that it is made for: `amd64`.
        complaint: why the engine does not answer, `None` if it does.
    """

    name: str
    found: bool
    architecture: str = ""
    complaint: str | None = None


@dataclass(frozen=True)
class HostFacts:
    """What the host reports about itself.

    Attributes:
        host: what was typed after `ssh`.
        user: the user name there.
        system: the name of its distribution.
        distribution: `ID` and then `ID_LIKE` of its `os-release`.
        machine: the output of `uname -m`.
        home: the home folder.
        temporary: the folder of temporary files.
        kills_at_logout: whether systemd ends the user's processes at the last logout.
        engine: the engine, `None` for runtime `none`.
        engine_version: the output of its `--version`, `None` if it is not installed.
        engine_error: why it cannot be used.
        gpus_by: the other engine that gives new containers GPUs, and why, if there is one.
        others: why the engines that come before this one cannot be used.
        storage: the folder of its images, `None` if unknown.
        hardware: how many NVIDIA GPUs are on the bus.
        driver: the version of the loaded driver, empty for none.
        gpus: the GPUs that `nvidia-smi` lists, or why it does not.
        toolkit: paths of NVIDIA's container toolkit: its programs, and the files that describe
            GPUs to podman.
        image: the image of a new container, `None` for none.
        image_needed: whether a container is to be created because no session runs.
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
    gpus_by: OtherWay | None = None
    others: tuple[EngineUnusable, ...] = ()
    storage: DiskSpace | None = None
    hardware: int = 0
    driver: str = ""
    gpus: Inventory | CannotAsk | None = None
    toolkit: tuple[str, ...] = ()
    image: ImageFacts | None = None
    image_needed: bool = True
