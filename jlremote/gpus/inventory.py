"""The GPUs of a host at one moment, with their processes and reservations, also as JSON."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from jlremote.gpus.leases import Claim, Lease, WaitingStart
from jlremote.text import one_line, size_in_words
from jlremote.times import age, utc

# An idle GPU still shows a few MiB, the driver's own. A CUDA context, the least that a process
# takes, is 300 MiB and more. The memory that a desktop takes on its own GPU does not count as use.
ALMOST_NOTHING_MIB = 256
DESKTOP_MIB = 2048

WELL_USED_PERCENT = 90

_Idle = Literal["free", "reserved", "assigned, idle", "cannot tell"]
State = Literal[_Idle, "idle, memory held", "partly busy", "busy", "held", "error"]


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
class Device:
    """A device that a session can get: a GPU, or a MIG device of one."""

    place: str  # `0`, or `0:1` for the MIG device 1 of GPU 0
    uuid: str  # `GPU-…` or `MIG-…`
    memory_used: int | None = None  # MiB, `None` where the driver does not say
    memory_total: int | None = None  # MiB
    processes: tuple[GpuProcess, ...] = ()
    claims: tuple[Claim, ...] = ()
    unseen: bool = False  # whether it may be reserved by more than can be seen
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
        return bool(self.processes or self._reserved or self.holds_memory)

    @property
    def free(self) -> bool | None:
        """Whether it is free, `None` where that cannot be told."""
        return False if self.in_use else None if self.unseen else True

    @property
    def _reserved(self) -> State | None:
        kinds = {claim.kind for claim in self.claims} - {"all"}
        if not kinds:
            return None
        return "assigned, idle" if kinds <= {"assigned", "job"} else "reserved"

    def state(self, busy: int | None = None) -> State:
        """Return the device's state; `busy` is the percent of time in which it computes."""
        if not (self.processes or self.holds_memory):
            return self._reserved or ("cannot tell" if self.unseen else "free")
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
        return replace(self, whole=change(self.whole), slices=tuple(map(change, self.slices)))

    @property
    def state(self) -> State:
        if self.failed:
            return "error"
        busiest = max(self.devices, key=lambda device: device.in_use, default=self.whole)
        return busiest.state(None if self.mig else self.busy)


def called(name: str, gpus: Sequence[Gpu]) -> list[tuple[Gpu, tuple[Device, ...]]]:
    """Return the devices of an index, a place, a UUID or how that begins, each with its GPU.

    A GPU that is divided stands for all its MIG devices.
    """
    known: list[tuple[Gpu, tuple[Device, ...]]]
    known = [(gpu, (device,)) for gpu in gpus for device in gpu.devices]
    whole = [(gpu, gpu.devices) for gpu in gpus if name in (str(gpu.index), gpu.whole.uuid)]
    exact = [(gpu, one) for gpu, one in known if name in (one[0].place, one[0].uuid)]
    begun = [(gpu, one) for gpu, one in known if one[0].uuid.startswith(name)]
    return whole[:1] or exact or (begun if len(name) > len("GPU-") + 3 else [])


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
    # new leases for running containers of this user without any, by the engine's id
    unleased: Mapping[str, Lease] = field(default_factory=dict)
    line: str = ""  # the name of the queue for these GPUs: their first one's UUID, and more
    container: str = ""  # the one whose own GPUs these are, empty for the host's
    unseen: str = ""  # why it cannot be told what containers and jobs have, empty if it can
    cdi: frozenset[str] = frozenset()  # the UUIDs that the host's CDI files name

    def place(self, host: str) -> str:
        """Return the host, or HOST/CONTAINER for the GPUs of a container."""
        return f"{host}/{self.container}" if self.container else host

    @property
    def remarks(self) -> tuple[str, ...]:
        """What the driver complains of, and what cannot be told."""
        smi = tuple(f"nvidia-smi: {note}" for note in self.notes)
        unseen = f"cannot tell which GPUs containers or jobs have: {self.unseen}"
        return (*smi, unseen) if self.unseen else smi

    @property
    def devices(self) -> tuple[Device, ...]:
        return tuple(device for gpu in self.gpus if not gpu.failed for device in gpu.devices)

    @property
    def mig_devices(self) -> tuple[Device, ...]:
        return tuple(part for gpu in self.gpus if not gpu.failed for part in gpu.slices)

    def with_lost(self, known: Iterable[Gpu]) -> Inventory:
        """Return the inventory with the known GPUs that are missing in it, as failed ones."""
        named = {gpu.index for gpu in self.gpus}
        lost = (replace(gpu, failed=True, busy=None) for gpu in known if gpu.index not in named)
        return replace(self, gpus=tuple(sorted((*self.gpus, *lost), key=lambda gpu: gpu.index)))

    def unanswered(self, why: str) -> Inventory:
        """Return the last known inventory, with the reason why there is no newer one."""
        return replace(self, gpus=tuple(replace(gpu, busy=None) for gpu in self.gpus), notes=(why,))

    def without(self, leases: Collection[str]) -> Inventory:
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
        "cannot_tell": inventory.unseen or None,
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
        "mig": [
            {"place": part.place, "profile": part.profile, "state": part.state(), **_device(part)}
            for part in gpu.slices
        ]
        if gpu.mig
        else None,
    }


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
            if c.kind != "all"
        ],
        "shared_with": [c.name for c in device.claims if c.kind == "all"],
    }


def _moment(seconds: float | None) -> str | None:
    return None if seconds is None else utc(seconds)


def size(mebibytes: int | None) -> str:
    """Return an amount of memory as a person reads it: `4 MiB`, `140 GiB`, `?`."""
    return "?" if mebibytes is None else size_in_words(mebibytes << 20, 1024)


def users(device: Device, now: float) -> str:
    """Return a device's users: every process and every reservation."""
    containers = {process.container for process in device.processes}
    if device.unseen and not device.in_use:
        return "cannot tell"
    told = [_process(process, now) for process in device.processes]
    told += [
        _claim(claim, now)
        for claim in device.claims
        if claim.kind != "all" and claim.name not in containers
    ]
    return ", ".join(told) or f"{size(device.memory_used)} held by an invisible process"


def users_of_all(devices: Iterable[Device], now: float) -> str:
    """Return the users of several devices, device by device."""
    return "; ".join(f"GPU {device.place}: {users(device, now)}" for device in devices)


def place_names(devices: Iterable[Device]) -> str:
    """Return the places of devices as words: `GPU 0, 3`."""
    return f"GPU {', '.join(device.place for device in devices)}"


def in_line(queue: Iterable[WaitingStart], now: float) -> str:
    """Return the starts that wait for GPUs, as words."""
    return "; ".join(
        f"`{one_line(one.user)}` for {how_many(one.count)} since {age(one.since, now)} "
        f"(`{one_line(one.session)}`)"
        for one in queue
    )


def how_many(count: int) -> str:
    """Return a number of GPUs in words."""
    return "a GPU" if count == 1 else f"{count} GPUs"


def _process(process: GpuProcess, now: float) -> str:
    whose = f"`{one_line(process.user)}`" if process.user else "an unknown user"
    where = f" in container `{one_line(process.container)}`" if process.container else ""
    since = f" since {age(process.since, now)}" if process.since is not None else ""
    return f"{whose}{where}{since} ({one_line(process.name)}, {size(process.memory)})"


def _claim(claim: Claim, now: float) -> str:
    whose = f"`{one_line(claim.user)}`'s " if claim.user else ""
    since = f" since {age(claim.since, now)}" if claim.since is not None else ""
    if claim.kind in ("assigned", "job"):
        what = "Slurm job" if claim.kind == "job" else "container"
        return f"assigned to {whose}{what} `{one_line(claim.name)}`{since}, idle"
    what = "start of" if claim.kind == "start" else claim.kind
    return f"reserved for {whose}{what} `{one_line(claim.name)}`{since}"
