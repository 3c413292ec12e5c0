"""Checks of the host: its disks, engine, driver and image."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from jlremote.doctor.findings import (
    WITHOUT_CONTAINERS,
    Check,
    Finding,
    fail,
    fine,
    from_error,
    skip,
    warn,
)
from jlremote.doctor.host_facts import DiskSpace, HostFacts
from jlremote.errors import NotFound
from jlremote.gpus.inventory import Inventory
from jlremote.gpus.snapshot import CannotAsk, NvidiaSmiMissing, NvidiaSmiSilent
from jlremote.place.host import installation
from jlremote.place.host.shell_text import command_line
from jlremote.place.runtimes.engine.engine_errors import (
    DockerIsPodman,
    EngineMissing,
    EngineUnusable,
)
from jlremote.place.runtimes.engine.kinds import DOCKER
from jlremote.text import listed, size_in_words

LITTLE_IN_HOME = 1 * 1000**3
LITTLE_FOR_IMAGES = 10 * 1000**3  # NVIDIA's PyTorch image takes more than 20 GB
FEW_FILES = 1000
_SHOWN = 5  # names of networks

# Architectures that images call otherwise than `uname -m`.
ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}
NO_GPU = "this host has no NVIDIA GPU"
UNKNOWN_GPUS = "cannot tell whether this host has NVIDIA GPUs: "


def _disk(facts: HostFacts) -> Finding:
    rooms = [(facts.home, LITTLE_IN_HOME), (facts.temporary, LITTLE_IN_HOME)]
    if facts.storage is not None:
        rooms.append((facts.storage, LITTLE_FOR_IMAGES))
    unusable = [room for room, _ in rooms if room.complaint is not None]
    if unusable:
        return fail(
            "; ".join(f"nothing can be written to {r.folder}: {r.complaint}" for r in unusable),
            *(_who_takes_it(room.folder) for room in unusable),
        )
    scarce = [_left(room) for room, least in rooms if _is_scarce(room, least)]
    if scarce:
        also = (facts.engine.shown("system", "df"),) if facts.engine else ()
        return warn(f"little space is left: {'; '.join(scarce)}", "df -h", *also)
    return fine("; ".join(_together([room for room, _ in rooms])))


def _together(rooms: list[DiskSpace]) -> Iterator[str]:
    """Yield the free space, once for folders that are on one disk."""
    for left in dict.fromkeys(map(_size, rooms)):
        yield f"{left} free in {', '.join(room.folder for room in rooms if _size(room) == left)}"


def _size(room: DiskSpace) -> str:
    return "?" if room.free_bytes is None else size_in_words(room.free_bytes)


def _who_takes_it(folder: str) -> str:
    shown = command_line((folder,))
    return f"df -h {shown}; du -xh --max-depth=1 {shown} | sort -h | tail"


def _is_scarce(room: DiskSpace, least: int) -> bool:
    return _few_files(room) or (room.free_bytes is not None and room.free_bytes < least)


def _few_files(room: DiskSpace) -> bool:
    # A file system without a table of inodes reports 0 of 0.
    return 0 < (room.free_files or 0) < FEW_FILES


def _left(room: DiskSpace) -> str:
    files = f" and {room.free_files} files" if _few_files(room) else ""
    return f"{_size(room)} free in {room.folder}{files}"


def _logout(facts: HostFacts) -> Finding:
    if facts.has_containers:
        return fine("containers stay")
    if facts.kills_at_logout:
        return warn(
            "systemd ends all your processes, Jupyter too, when your last login ends "
            "(`KillUserProcesses`)",
            command_line(("sudo", "loginctl", "enable-linger", facts.user)),
        )
    return fine("what you run survives the logout")


def _scheduler(facts: HostFacts) -> Finding:
    assert facts.scheduler is not None
    found = facts.scheduler
    if found.complaint is not None:
        return warn(
            f"{found.version} does not answer: {found.complaint}",
            "its jobs go on meanwhile; `scontrol ping` on the host shows when it is back",
        )
    return fine("; ".join(filter(None, (found.version, found.choices))))


def _apptainer(facts: HostFacts) -> Finding:
    if facts.apptainer:
        return fine(facts.apptainer)
    where = f" ({facts.unasked or facts.looked})" if facts.looked else ""
    return skip(
        f"not on the login node{where}; `--image` needs it on the nodes, and then `--pull-on job`",
        "where the site has it as a module: `module load` in `~/.bashrc` there",
    )


def _engine(facts: HostFacts) -> Finding:
    engine = facts.required_engine
    if isinstance(facts.engine_error, EngineMissing) and facts.scheduler is not None:
        return skip("no container engine; `jlr run --slurm` and `--runtime none` need none")
    if facts.engine_version is None:
        # It may be there, and `sudo` before it refuse.
        if facts.engine_error and not isinstance(facts.engine_error, EngineMissing):
            return from_error(facts.engine_error)
        both = any(isinstance(other, EngineMissing) for other in facts.others)
        chosen = f"; {facts.engine_chosen_by} chooses it" if facts.engine_chosen_by else ""
        where = f": {facts.looked}" if facts.looked else ""
        if facts.unasked:
            which = "docker or podman" if both else f"`{engine.name}`"
            return fail(f"cannot tell whether the host has {which}{chosen}{where}")
        return fail(
            f"neither docker nor podman was found on the host{where}"
            if both
            else f"`{engine.name}` was not found on the host{chosen}{where}",
            *installation.commands(engine.everyday.kind.program, facts.distribution),
            *(("or images by Apptainer: `--runtime apptainer`",) if facts.apptainer else ()),
            "or without containers: `--runtime none`",
        )
    if "podman" in facts.engine_version and engine.kind is DOCKER.kind:
        return from_error(DockerIsPodman())
    by = facts.gpus_by
    besides = (f"{by.engine.name} gives GPUs, as {by.why}",) if by and by.why else ()
    return _with_others((facts.engine_version, *besides), facts.others)


def _with_others(told: Sequence[str], others: Sequence[EngineUnusable]) -> Finding:
    """Return that an engine is there, and why the others that were tried cannot be used."""
    text = "; ".join((*told, *(other.message for other in others)))
    broken = [o for o in others if not isinstance(o, EngineMissing | DockerIsPodman)]
    return warn(text, *(o.hint for o in broken if o.hint)) if broken else fine(text)


def _permission(facts: HostFacts) -> Finding:
    engine, error = facts.required_engine, facts.engine_error
    if error is None:
        runs = ", and it runs" if engine.kind.daemon else ""
        return fine(f"{facts.user} may use {engine.name}{runs}")
    if "may not use" in error.message:
        group = engine.kind.daemon or engine.kind.program
        again = f"then `jlr disconnect {facts.host}`: a login reads groups"
        joins = command_line(("sudo", "usermod", "-aG", group, facts.user))
        return from_error(error, joins, again)
    return from_error(error)


def _networks(facts: HostFacts) -> Finding:
    if facts.left_over is None:
        return skip("the engine does not list them")
    if not facts.left_over:
        return fine("none is left over")
    names = listed(facts.left_over, _SHOWN)
    return warn(f"left over from sessions that are gone: {names}", f"jlr prune {facts.host}")


def _driver(facts: HostFacts) -> Finding:
    gpus = facts.gpus
    if isinstance(gpus, Inventory) and gpus.gpus:
        version = f"{facts.driver}, " if facts.driver else ""
        return fine(f"{version}{_counted(gpus)}")
    if isinstance(gpus, NvidiaSmiSilent):
        have = f"the driver {facts.driver} is loaded, but " if facts.driver else UNKNOWN_GPUS
        return fail(f"{have}{gpus.message}", *((gpus.hint,) if gpus.hint else ()))
    if not facts.hardware and not facts.driver:
        if isinstance(gpus, NvidiaSmiMissing) and facts.unasked:
            return warn(f"{UNKNOWN_GPUS}{gpus.message}, and {facts.unasked}")
        return warn(f"{NO_GPU} ({gpus.message})" if isinstance(gpus, CannotAsk) else NO_GPU)
    if facts.driver:
        said = gpus.message if isinstance(gpus, CannotAsk) else "it lists no GPU"
        return fail(
            f"the driver {facts.driver} is loaded but does not work: {said}",
            "`sudo reboot` is needed after an update of the driver; "
            "`sudo dmesg | grep -i nvrm` on the host tells more",
        )
    return fail(
        f"there are {facts.hardware} NVIDIA GPUs, but no driver is loaded",
        *installation.commands("nvidia-driver", facts.distribution),
    )


def _counted(gpus: Inventory) -> str:
    names = [gpu.name for gpu in gpus.gpus]
    return ", ".join(f"{names.count(name)}x {name}" for name in dict.fromkeys(names))


def _image(facts: HostFacts) -> Finding:
    if facts.image is None:
        return skip("no image is named")
    if facts.image.found:
        return fine(facts.image.name)
    if not facts.image_needed:
        return skip(f"`{facts.image.name}` is gone from the host, but the session does not need it")
    if facts.image.complaint is not None:
        return fail(f"the engine cannot describe the image: {facts.image.complaint}")
    pull = command_line(("jlr", "pull", facts.host, facts.image.name))
    missing = NotFound(f"the image `{facts.image.name}` is not on the host", hint=f"`{pull}`")
    return from_error(missing)


def _architecture(facts: HostFacts) -> Finding:
    assert facts.image is not None
    here = ARCHITECTURES.get(facts.machine, facts.machine)
    made_for = facts.image.architecture
    if made_for and made_for != here:
        engine = facts.engine or DOCKER
        pull = engine.shown("pull", "--platform", f"linux/{here}", facts.image.name)
        return fail(
            f"the image is made for {made_for}, and the host is {here}",
            f"pull or build the image for that architecture: `{pull}`",
        )
    return fine(f"{here}, as the host")


def _of_engine(judge: Callable[[HostFacts], Finding]) -> Callable[[HostFacts], Finding]:
    return lambda facts: judge(facts) if facts.has_containers else WITHOUT_CONTAINERS


# For a login node of a cluster only.
CLUSTER: tuple[Check[HostFacts], ...] = (
    Check("scheduler", _scheduler, needs=("shell",)),
    Check("apptainer", _apptainer, needs=("shell",)),
)
CHECKS: tuple[Check[HostFacts], ...] = (
    Check("system", lambda f: fine(f"{f.system}, {f.machine}".strip(", ")), needs=("shell",)),
    Check("disk", _disk, needs=("shell",)),
    Check("logout", _logout, needs=("shell",)),
    Check("engine", _of_engine(_engine), needs=("shell",)),
    Check("permission", _of_engine(_permission), needs=("engine",)),
    Check("networks", _of_engine(_networks), needs=("permission",)),
    Check("driver", _driver, needs=("shell",)),
    Check("image", _image, needs=("permission",)),
    Check("architecture", _architecture, needs=("image",)),
)
