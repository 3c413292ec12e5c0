"""The GPUs of a host at one moment, with their processes and reservations."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace
from typing import Literal

# An idle GPU still shows a few MiB, the driver's own. A CUDA context, the least that a process
# takes, is 300 MiB and more. The memory that a desktop takes on its own GPU does not count as use.
ALMOST_NOTHING_MIB = 256
DESKTOP_MIB = 2048

WELL_USED_PERCENT = 90

State = Literal["free", "reserved", "held, idle", "below 90 %", "busy", "held", "error"]


@dataclass(frozen=True)
class GpuProcess:
    """A process that computes on a GPU.

    Attributes:
        pid: its id on the host.
        name: its program, as the driver knows it.
        memory: MiB of the GPU's memory, `None` where the driver does not say.
        user: its user on the host; in a container often `root`.
        container: the name of its container or the first digits of its id; `None` for none.
        since: its start, in seconds since the epoch by the host's clock.
    """

    pid: int
    name: str
    memory: int | None
    user: str | None = None
    container: str | None = None
    since: float | None = None


@dataclass(frozen=True)
class Claim:
    """A reservation: jlr has given the device to a session, whether it computes or not.

    Attributes:
        kind: `container` for one that runs, `session` if only a lease is known, `start` for a
            start under way.
        name: the container's or session's name.
        user: the user who started it.
        since: seconds since the epoch by the host's clock.
        lease: the lease's name, if the claim comes from one.
    """

    kind: Literal["container", "session", "start"]
    name: str
    user: str | None
    since: float | None
    lease: str | None = None


@dataclass(frozen=True)
class Device:
    """A device that a session can get: a GPU, or a MIG device of one.

    Attributes:
        place: `0`, or `0:1` for the MIG device 1 of GPU 0.
        uuid: `GPU-…` or `MIG-…`.
        memory_used: MiB, `None` where the driver does not say.
        memory_total: MiB.
        processes: processes that compute on it.
        claims: jlr's reservations of it.
        draws: whether a display is attached.
        profile: size of a MIG device, e.g. `1g.10gb`.
    """

    place: str
    uuid: str
    memory_used: int | None = None
    memory_total: int | None = None
    processes: tuple[GpuProcess, ...] = ()
    claims: tuple[Claim, ...] = ()
    draws: bool = False
    profile: str | None = None

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
        """Return the device's state in a word.

        Args:
            busy: percent of the time in which it computes, if that is known.
        """
        if not (self.processes or self.holds_memory):
            return "reserved" if self.claims else "free"
        if busy is None:
            return "held"
        if busy == 0:
            return "held, idle"
        return "busy" if busy >= WELL_USED_PERCENT else "below 90 %"


@dataclass(frozen=True)
class Gpu:
    """One GPU.

    Attributes:
        index: its number, as `nvidia-smi` counts.
        name: its product name.
        whole: the GPU as a device.
        busy: percent of the last second in which it computed, `None` if the driver does not say.
        temperature: °C.
        power: W.
        power_limit: W.
        mig: whether it is divided into MIG devices, and cannot be given as a whole.
        slices: its MIG devices.
        failed: whether the driver answers with an error for it.
    """

    index: int
    name: str
    whole: Device
    busy: int | None = None
    temperature: int | None = None
    power: float | None = None
    power_limit: float | None = None
    mig: bool = False
    slices: tuple[Device, ...] = ()
    failed: bool = False

    @property
    def devices(self) -> tuple[Device, ...]:
        """The devices that sessions can get of it."""
        return self.slices if self.mig else (self.whole,)

    @property
    def processes(self) -> tuple[tuple[Device, GpuProcess], ...]:
        """All its processes, each with its device."""
        places = (self.whole, *self.slices)
        return tuple((device, process) for device in places for process in device.processes)

    @property
    def state(self) -> State:
        """The GPU's state in a word."""
        if self.failed:
            return "error"
        busiest = max(self.devices, key=lambda device: device.in_use, default=self.whole)
        return busiest.state(None if self.mig else self.busy)


@dataclass(frozen=True)
class Inventory:
    """The GPUs of a host at one moment.

    Attributes:
        gpus: by index.
        now: seconds since the epoch by the host's clock.
        user: the user who asked, by the host's name.
        boot: the id of the host's boot.
        notes: further complaints of the driver.
        dead_leases: names of this user's leases that no longer count.
    """

    gpus: tuple[Gpu, ...]
    now: float
    user: str
    boot: str = ""
    notes: tuple[str, ...] = ()
    dead_leases: tuple[str, ...] = ()

    @property
    def devices(self) -> tuple[Device, ...]:
        """All devices that sessions can get."""
        return tuple(device for gpu in self.gpus if not gpu.failed for device in gpu.devices)

    def without(self, leases: Collection[str]) -> Inventory:
        """Return the inventory without the claims of some leases."""

        def left(device: Device) -> Device:
            kept = tuple(claim for claim in device.claims if claim.lease not in leases)
            return replace(device, claims=kept)

        gpus = tuple(
            replace(gpu, whole=left(gpu.whole), slices=tuple(map(left, gpu.slices)))
            for gpu in self.gpus
        )
        return replace(self, gpus=gpus)
