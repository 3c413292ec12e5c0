"""GPUs and their users, as rows of tables."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from jlremote.cli.screen.tables import show_table
from jlremote.cli.screen.terminal import answer
from jlremote.gpus.inventory import Device, Gpu, Inventory, to_json
from jlremote.gpus.usage import size
from jlremote.times import age

if TYPE_CHECKING:
    from jlremote.workflow.host.pools import PoolAnswer

GPU_HEADINGS = ("GPU", "NAME", "MEMORY", "BUSY", "TEMP", "POWER", "STATE")
QUEUE_HEADINGS = ("WAITING", "USER", "GPUS", "SINCE", "FOR")
USER_HEADINGS = ("GPU", "USER", "CONTAINER", "SINCE", "MEMORY", "PROGRAM", "PID")

Row = tuple[str, ...]

_WHY = {
    "start": "is being started",
    "assigned": "assigned to this container, idle",
    "job": "assigned to this job of Slurm, idle",
    "all": "this container has all GPUs",
}


def show(inventory: Inventory) -> None:
    """Print the GPUs, and below them their users."""
    show_table(GPU_HEADINGS, [row for gpu in inventory.gpus for row in gpu_rows(gpu)])
    for headings, rows in ((USER_HEADINGS, user_rows), (QUEUE_HEADINGS, queue_rows)):
        if below := list(rows(inventory)):
            answer("")
            show_table(headings, below)


def queue_rows(inventory: Inventory) -> Iterator[Row]:
    """Give a row for each start that waits for GPUs."""
    for number, one in enumerate(inventory.queue, 1):
        since = age(one.since, inventory.now)
        yield (str(number), one.user, str(one.count), since, one.session)


def show_pool(answers: Sequence[PoolAnswer[Inventory]]) -> None:
    """Print the GPUs of a pool's hosts in one table, and below them their users."""
    show_table(("HOST", *GPU_HEADINGS), pool_rows(answers))
    users = list(pool_user_rows(answers))
    if users:
        answer("")
        show_table(("HOST", *USER_HEADINGS), users)


def pool_rows(answers: Sequence[PoolAnswer[Inventory]]) -> Iterator[Row]:
    """Give the rows of all hosts; a host that does not answer has one."""
    for one in answers:
        if one.answer is None:
            yield (one.host, *[""] * (len(GPU_HEADINGS) - 1), "no answer")
            continue
        for gpu in one.answer.gpus:
            yield from ((one.host, *row) for row in gpu_rows(gpu))


def pool_notes(answers: Sequence[PoolAnswer[Inventory]]) -> Iterator[str]:
    """Give what the driver of each host complains of, and what cannot be told there."""
    for one in answers:
        for remark in one.answer.remarks if one.answer is not None else ():
            yield f"{one.host}: {remark}"


def pool_user_rows(answers: Sequence[PoolAnswer[Inventory]]) -> Iterator[Row]:
    """Give the rows of the users of all hosts."""
    for one in answers:
        if one.answer is not None:
            yield from ((one.host, *row) for row in user_rows(one.answer))


def pool_document(answers: Sequence[PoolAnswer[Inventory]]) -> list[dict[str, Any]]:
    """Return the array of `--json`: the object of each host, or its error."""
    return [
        to_json(one.answer, one.host)
        if one.answer is not None
        else {"host": one.host, "error": one.error.message if one.error else None}
        for one in answers
    ]


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
