"""The users of a GPU, in words."""

from __future__ import annotations

from collections.abc import Iterable

from jlremote.gpus.inventory import Claim, Device, GpuProcess
from jlremote.gpus.wait_queue import WaitingStart
from jlremote.text import one_line, size_in_words
from jlremote.times import age


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
    if not told:
        told = [f"{size(device.memory_used)} held by an invisible process"]
    return ", ".join(told)


def users_of_all(devices: Iterable[Device], now: float) -> str:
    """Return the users of each of some devices."""
    return "; ".join(f"GPU {device.place}: {users(device, now)}" for device in devices)


def place_names(devices: Iterable[Device]) -> str:
    """Return devices by their places."""
    return f"GPU {', '.join(device.place for device in devices)}"


def in_line(queue: Iterable[WaitingStart], now: float) -> str:
    """Return the starts that wait for GPUs."""
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
