"""The GPUs of a host at one moment, with their processes and reservations, also as JSON."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass, replace
from typing import Any, Literal

from jlremote.gpus.wait_queue import WaitingStart
from jlremote.times import utc

# An idle GPU still shows a few MiB, the driver's own. A CUDA context, the least that a process
# takes, is 300 MiB and more. The memory that a desktop takes on its own GPU does not count as use.
ALMOST_NOTHING_MIB = 256
DESKTOP_MIB = 2048

WELL_USED_PERCENT = 90

State = Literal["free", "reserved", "idle, memory held", "partly busy", "busy", "held", "error"]


@dataclass(frozen=True)
class GpuProcess:
    """A process that computes on a GPU."""

    pid: int  # its id on the host
    name: str  # its program, as the driver knows it
    memory: int | None  # MiB of the GPU's memory, `None` where the driver does not say
    user: str | None = None  # its user on the host; in a container often `root`
    container: str | None = None  # its container's name or the first digits of its id
    since: float | None = None  # its start, in seconds since the epoch by the host's clock


@dataclass(frozen=True)
class Claim:
    """A reservation: jlr has given the device to a session, whether it computes or not."""

    # A container that runs, a session of which only a lease is known, or a start under way.
    kind: Literal["container", "session", "start"]
    name: str  # the container's or session's
    user: str | None  # the user who started it
    since: float | None  # seconds since the epoch by the host's clock
    lease: str | None = None  # the lease's name, if the claim comes from one


@dataclass(frozen=True)
class Device:
    """A device that a session can get: a GPU, or a MIG device of one."""

    place: str  # `0`, or `0:1` for the MIG device 1 of GPU 0
    uuid: str  # `GPU-…` or `MIG-…`
    memory_used: int | None = None  # MiB, `None` where the driver does not say
    memory_total: int | None = None  # MiB
    processes: tuple[GpuProcess, ...] = ()
    claims: tuple[Claim, ...] = ()  # jlr's reservations of it
    draws: bool = False  # whether a display is attached
    profile: str | None = None  # size of a MIG device, e.g. `1g.10gb`

    @property
    def is_part(self) -> bool:
        """Whether it is a MIG device."""
        return ":" in self.place

    @property
    def memory_free(self) -> int:
        """MiB that are free, 0 if the driver does not say."""
        return max(0, (self.memory_total or 0) - (self.memory_used or 0))

    @property
    def holds_memory(self) -> bool:
        """Whether more memory is taken than on an idle GPU."""
        limit = DESKTOP_MIB if self.draws else ALMOST_NOTHING_MIB
        return (self.memory_used or 0) > limit

    @property
    def in_use(self) -> bool:
        """Whether it has processes, memory in use or a reservation."""
        return bool(self.processes or self.claims or self.holds_memory)

    def state(self, busy: int | None = None) -> State:
        """Return the device's state, by the percent of the time in which it computes if known."""
        if not (self.processes or self.holds_memory):
            return "reserved" if self.claims else "free"
        if busy is None:
            return "held"
        if busy == 0:
            return "idle, memory held"
        return "busy" if busy >= WELL_USED_PERCENT else "partly busy"


@dataclass(frozen=True)
class Gpu:
    """One GPU."""

    index: int  # its number, as `nvidia-smi` counts
    name: str  # the product's
    whole: Device
    busy: int | None = None  # percent of the last second, `None` if the driver does not say
    temperature: int | None = None  # °C
    power: float | None = None  # W
    power_limit: float | None = None  # W
    mig: bool = False  # whether it is divided into MIG devices, and cannot be given as a whole
    slices: tuple[Device, ...] = ()
    failed: bool = False  # whether the driver answers with an error for it

    @property
    def devices(self) -> tuple[Device, ...]:
        return self.slices if self.mig else (self.whole,)

    @property
    def processes(self) -> tuple[tuple[Device, GpuProcess], ...]:
        """All its processes, each with its device."""
        places = (self.whole, *self.slices)
        return tuple((device, process) for device in places for process in device.processes)

    def with_each_device(self, change: Callable[[Device], Device]) -> Gpu:
        """Return the GPU with `change` applied to the whole and to each MIG device."""
        return replace(self, whole=change(self.whole), slices=tuple(map(change, self.slices)))

    @property
    def state(self) -> State:
        if self.failed:
            return "error"
        busiest = max(self.devices, key=lambda device: device.in_use, default=self.whole)
        return busiest.state(None if self.mig else self.busy)


@dataclass(frozen=True)
class Unleased:
    """A running container of the user who asked, whose GPUs no lease of that user reserves."""

    name: str
    id: str  # the engine's
    uuids: tuple[str, ...]


@dataclass(frozen=True)
class Inventory:
    """The GPUs of a host at one moment."""

    gpus: tuple[Gpu, ...]  # by index
    now: float  # seconds since the epoch by the host's clock
    user: str  # the user who asked, by the host's name
    boot: str = ""  # the id of the host's boot
    notes: tuple[str, ...] = ()  # further complaints of the driver
    dead_leases: tuple[str, ...] = ()  # names of this user's leases that no longer count
    queue: tuple[WaitingStart, ...] = ()  # the starts that wait for GPUs, the first first
    unleased: tuple[Unleased, ...] = ()

    @property
    def devices(self) -> tuple[Device, ...]:
        return tuple(device for gpu in self.gpus if not gpu.failed for device in gpu.devices)

    @property
    def whole_gpus(self) -> tuple[Device, ...]:
        """The GPUs that sessions can get as a whole."""
        return tuple(gpu.whole for gpu in self.gpus if not gpu.failed and not gpu.mig)

    @property
    def mig_devices(self) -> tuple[Device, ...]:
        """The MIG devices that sessions can get."""
        return tuple(part for gpu in self.gpus if not gpu.failed for part in gpu.slices)

    def with_lost(self, known: Iterable[Gpu]) -> Inventory:
        """Return the inventory with those GPUs, as failed ones, that the driver names no more."""
        named = {gpu.index for gpu in self.gpus}
        lost = (replace(gpu, failed=True, busy=None) for gpu in known if gpu.index not in named)
        return replace(self, gpus=tuple(sorted((*self.gpus, *lost), key=lambda gpu: gpu.index)))

    def unanswered(self, why: str) -> Inventory:
        """Return what was last known, with the reason why no more is."""
        return replace(self, gpus=tuple(replace(gpu, busy=None) for gpu in self.gpus), notes=(why,))

    def without(self, leases: Collection[str]) -> Inventory:
        """Return the inventory without the claims of some leases."""

        def left(device: Device) -> Device:
            kept = tuple(claim for claim in device.claims if claim.lease not in leases)
            return replace(device, claims=kept)

        return replace(self, gpus=tuple(gpu.with_each_device(left) for gpu in self.gpus))


def to_json(inventory: Inventory, host: str) -> dict[str, Any]:
    """Return the stable document of `--json`: memory in MiB, power in W, times in UTC."""
    return {
        "host": host,
        "time": _moment(inventory.now),
        "gpus": [_gpu(gpu) for gpu in inventory.gpus],
        "queue": [
            {"user": w.user, "session": w.session, "gpus": w.count, "since": _moment(w.since)}
            for w in inventory.queue
        ],
        "notes": list(inventory.notes),
    }


def _gpu(gpu: Gpu) -> dict[str, Any]:
    return {
        "index": gpu.index,
        "name": gpu.name,
        "state": gpu.state,
        **_device(gpu.whole),
        "busy_percent": gpu.busy,
        "temperature": gpu.temperature,
        "power": gpu.power,
        "power_limit": gpu.power_limit,
        "mig": [_part(part) for part in gpu.slices] if gpu.mig else None,
    }


def _part(part: Device) -> dict[str, Any]:
    known = {"place": part.place, "profile": part.profile, "state": part.state()}
    return known | _device(part)


def _device(device: Device) -> dict[str, Any]:
    return {
        "uuid": device.uuid,
        "memory_used": device.memory_used,
        "memory_total": device.memory_total,
        "in_use": device.in_use,
        "processes": [vars(p) | {"since": _moment(p.since)} for p in device.processes],
        "kept_for": [
            {"kind": c.kind, "name": c.name, "user": c.user, "since": _moment(c.since)}
            for c in device.claims
        ],
    }


def _moment(seconds: float | None) -> str | None:
    return None if seconds is None else utc(seconds)
