"""GPUs and their users as tables or JSON: of a host, of a pool's hosts, of a cluster."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from jlremote import times
from jlremote.cli.screen.tables import show_table
from jlremote.cli.screen.terminal import answer
from jlremote.gpus.inventory import Device, Gpu, Inventory, to_json
from jlremote.gpus.usage import size
from jlremote.schedulers.contract import ClusterGpus
from jlremote.times import age

if TYPE_CHECKING:
    from jlremote.workflow.host.pools import PoolAnswer

    Snapshot = Inventory | ClusterGpus | list[PoolAnswer[Inventory]]

GPU_HEADINGS = ("GPU", "NAME", "MEMORY", "BUSY", "TEMP", "POWER", "STATE")
USER_HEADINGS = ("GPU", "USER", "CONTAINER", "SINCE", "MEMORY", "PROGRAM", "PID")
_QUEUE_HEADINGS = ("WAITING", "USER", "GPUS", "SINCE", "FOR")
_PARTITION_HEADINGS = ("PARTITION", "GPU", "NODES", "FREE", "TOTAL")
_JOB_HEADINGS = ("USER", "JOB", "GPUS", "PARTITION", "NODES", "TIME LEFT")

Row = tuple[str, ...]
Table = tuple[Row, Iterable[Row]]  # headings and rows

_WHY = {
    "start": "is being started",
    "assigned": "assigned to this container, idle",
    "job": "assigned to this job of Slurm, idle",
    "all": "this container has all GPUs",
}


def show(found: Snapshot) -> None:
    """Print the GPUs, and below them who uses them and who waits."""
    (headings, rows), *below = tables(found)
    show_table(headings, rows)
    for headings, rows in below:
        if some := list(rows):
            answer("")
            show_table(headings, some)


def tables(found: Snapshot) -> list[Table]:
    """Return the table of GPUs, and those of their users."""
    if isinstance(found, Inventory):
        gpus = (row for gpu in found.gpus for row in gpu_rows(gpu))
        queue = (_QUEUE_HEADINGS, _queue_rows(found))
        return [(GPU_HEADINGS, gpus), (USER_HEADINGS, user_rows(found)), queue]
    if isinstance(found, ClusterGpus):
        return [(_PARTITION_HEADINGS, _partitions(found)), (_JOB_HEADINGS, _jobs(found))]
    users = ((one.host, *row) for one in found if one.answer for row in user_rows(one.answer))
    return [(("HOST", *GPU_HEADINGS), _pool_rows(found)), (("HOST", *USER_HEADINGS), users)]


def notes(found: Snapshot) -> tuple[str, ...]:
    """Return what drivers complain of, and what cannot be told."""
    if isinstance(found, Inventory):
        return found.remarks
    if isinstance(found, ClusterGpus):
        hidden = f"{found.hidden} more GPUs are in use; Slurm hides their users"
        return (hidden,) if found.hidden else ()
    told = ((one.host, one.answer.remarks) for one in found if one.answer is not None)
    return tuple(f"{host}: {remark}" for host, remarks in told for remark in remarks)


def document(found: Snapshot, host: str) -> Any:
    """Return the object of `--json`; of a pool an array of its hosts' objects, or errors."""
    if isinstance(found, Inventory):
        return to_json(found, host)
    if isinstance(found, ClusterGpus):
        left = [None if job.until is None else times.utc(job.until) for job in found.jobs]
        jobs = [asdict(job) | {"until": end} for job, end in zip(found.jobs, left, strict=True)]
        return {"host": host} | asdict(found) | {"jobs": jobs}
    return [
        to_json(one.answer, one.host)
        if one.answer is not None
        else {"host": one.host, "error": one.error.message if one.error else None}
        for one in found
    ]


def _partitions(found: ClusterGpus) -> Iterator[Row]:
    for nodes in found.nodes:
        counts = (str(nodes.nodes), str(nodes.free), str(nodes.total))
        yield (nodes.partition, nodes.gpu or "-", *counts)


def _jobs(found: ClusterGpus) -> Iterator[Row]:
    for job in found.jobs:
        left = "?" if job.until is None else times.left(job.until)
        yield (job.user, job.job, str(job.gpus), job.partition, job.nodes, left)


def _queue_rows(inventory: Inventory) -> Iterator[Row]:
    """Give a row for each start that waits for GPUs."""
    for number, one in enumerate(inventory.queue, 1):
        since = age(one.since, inventory.now)
        yield (str(number), one.user, str(one.count), since, one.session)


def _pool_rows(answers: Iterable[PoolAnswer[Inventory]]) -> Iterator[Row]:
    """Give the rows of all hosts; a host that does not answer has one."""
    for one in answers:
        if one.answer is None:
            yield (one.host, *[""] * (len(GPU_HEADINGS) - 1), "no answer")
            continue
        for gpu in one.answer.gpus:
            yield from ((one.host, *row) for row in gpu_rows(gpu))


def gpu_rows(gpu: Gpu) -> Iterator[Row]:
    """Give the row of a GPU, and one for each of its MIG devices."""
    yield (
        str(gpu.index),
        short_name(gpu),
        memory(gpu.whole),
        percent(gpu.busy),
        "?" if gpu.temperature is None else f"{gpu.temperature}C",
        power(gpu),
        gpu.state,
    )
    for part in gpu.slices:
        yield (part.place, f"MIG {part.profile}", memory(part), "", "", "", part.state())


def user_rows(inventory: Inventory) -> Iterator[Row]:
    """Give a row for each process, for each claim without a process, and for hidden processes."""
    for gpu in inventory.gpus:
        for device in (gpu.whole, *gpu.slices):
            yield from _users(device, inventory.now)


def _users(device: Device, now: float) -> Iterator[Row]:
    for p in device.processes:
        held = size(p.memory)
        facts = (p.user or "?", p.container or "-", age(p.since, now), held, p.name, str(p.pid))
        yield (device.place, *facts)
    containers = {process.container for process in device.processes}
    for claim in device.claims:
        if claim.name not in containers:
            why = _WHY.get(claim.kind, f"reserved by its {claim.kind}")
            since = age(claim.since, now)
            yield (device.place, claim.user or "?", claim.name, since, "-", why, "-")
    if device.holds_memory and not device.processes:
        yield (device.place, "?", "?", "?", size(device.memory_used), "cannot be seen", "?")


def short_name(gpu: Gpu) -> str:
    """Return the product's name without `NVIDIA`."""
    return gpu.name.removeprefix("NVIDIA ")


def memory(device: Device) -> str:
    """Return the used and the total memory."""
    return f"{size(device.memory_used)} / {size(device.memory_total)}"


def percent(amount: int | None) -> str:
    """Return a percentage, `?` where it is not known."""
    return "?" if amount is None else f"{amount} %"


def power(gpu: Gpu) -> str:
    """Return the power that the GPU draws, and its limit."""
    if gpu.power is None:
        return "?"
    limit = "" if gpu.power_limit is None else f" / {gpu.power_limit:.0f}"
    return f"{gpu.power:.0f}{limit} W"
