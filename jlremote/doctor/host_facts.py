"""Facts about a host, before they are judged."""

from __future__ import annotations

from dataclasses import dataclass

from jlremote.errors import JlrError
from jlremote.gpus.inventory import Inventory
from jlremote.gpus.snapshot import CannotAsk
from jlremote.runtimes.docker.old_docker import OtherWay
from jlremote.runtimes.engine.engine import Engine
from jlremote.runtimes.engine.engine_errors import EngineUnusable
from jlremote.schedulers.contract import SchedulerFacts


@dataclass(frozen=True)
class DiskSpace:
    """A folder on the host's disks, with the space that is left there."""

    folder: str
    complaint: str | None = None  # why nothing can be written there, `None` if it can
    free_bytes: int | None = None  # the free space, `None` if unknown
    free_files: int | None = None  # how many more files it takes, `None` if there is no limit


@dataclass(frozen=True)
class ImageFacts:
    """An image on the host."""

    name: str  # as it was typed
    found: bool  # whether the host has it
    architecture: str = ""  # Go's name of the one that it is made for: `amd64`
    complaint: str | None = None  # why the engine does not answer, `None` if it does


@dataclass(frozen=True)
class HostFacts:
    """What the host reports about itself."""

    host: str  # what was typed after `ssh`
    user: str = "?"
    system: str = ""  # the name of its distribution
    distribution: tuple[str, ...] = ()  # `ID` and then `ID_LIKE` of its `os-release`
    machine: str = ""  # the output of `uname -m`
    home: DiskSpace = DiskSpace("~")
    temporary: DiskSpace = DiskSpace("/tmp")  # noqa: S108  # it is a place to look at
    kills_at_logout: bool = False  # whether systemd ends the user's processes at the last logout
    engine: Engine | None = None  # `None` for runtime `none`
    engine_chosen_by: str = ""  # the setting that names it, in words
    engine_version: str | None = None  # `None` if it was not found
    engine_error: JlrError | None = None  # why it cannot be used
    gpus_by: OtherWay | None = None  # the other engine that gives new containers GPUs, and why
    scheduler: SchedulerFacts | None = None  # the scheduler of its cluster, `None` for none
    apptainer: str = ""  # the version of Apptainer or its older form, empty for none
    others: tuple[EngineUnusable, ...] = ()  # why engines before this one cannot be used
    looked: str = ""  # where programs were looked for, in words, if a plain look found not all
    unasked: str = ""  # why it is not known what a login shell finds, empty if it is
    storage: DiskSpace | None = None  # the folder of its images, `None` if unknown
    hardware: int = 0  # how many NVIDIA GPUs are on the bus
    driver: str = ""  # the version of the loaded driver, empty for none
    gpus: Inventory | CannotAsk | None = None  # what `nvidia-smi` lists, or why it does not
    # Paths of NVIDIA's container toolkit: its programs, and the files that describe GPUs to podman.
    toolkit: tuple[str, ...] = ()
    left_over: tuple[str, ...] | None = ()  # networks of sessions that are gone; `None` if unknown
    image: ImageFacts | None = None  # the image of a new container, `None` for none
    image_needed: bool = True  # whether a container is to be created because no session runs

    @property
    def has_containers(self) -> bool:
        """Whether there is an engine, which may be unusable."""
        return self.engine is not None

    @property
    def required_engine(self) -> Engine:
        """The engine of a host with containers."""
        assert self.engine is not None
        return self.engine
