"""What `jlr gpus` shows of a host, a pool or a cluster: as rows of tables, or as JSON."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from jlremote import times
from jlremote.cli.screen.reports import show_table, table
from jlremote.cli.screen.terminal import answer
from jlremote.gpus.inventory import Device, Gpu, Inventory, size, to_json
from jlremote.place.clusters.scheduler import ClusterGpus
from jlremote.text import one_line
from jlremote.times import age

if TYPE_CHECKING:
    from typing import TypeAlias

    from rich.console import RenderableType

    from jlremote.hosts.links import PoolAnswer

_GPU_HEADINGS = ("GPU", "NAME", "MEMORY", "BUSY", "TEMP", "POWER", "STATE")
_USER_HEADINGS = ("GPU", "USER", "CONTAINER", "SINCE", "MEMORY", "PROGRAM", "PID")
Row = tuple[str, ...]
Shown: TypeAlias = "Inventory | ClusterGpus | Sequence[PoolAnswer[Inventory]]"

_WHY = {
    "start": "is being started",
    "assigned": "assigned to this container, idle",
    "job": "assigned to this job of Slurm, idle",
    "all": "this container has all GPUs",
}


def show(shown: Shown) -> None:
    """Print the GPUs, and below them their users."""
    (headings, rows), *below = tables_of(shown)
    show_table(headings, rows)
    for headings, rows in below:
        if rows:
            answer("")
            show_table(headings, rows)


def drawn(name: str, shown: Shown) -> RenderableType:
    """Return the drawing of GPUs and their users for `--watch`."""
    from rich.console import Group
    from rich.text import Text

    pause = "asked once a minute; " if isinstance(shown, ClusterGpus) else ""
    title = Text(f"{one_line(name)}  ({pause}Ctrl-C ends)", style="dim")
    notes = (Text(one_line(note), style="red") for note in notes_of(shown))
    filled = ((Text(""), table(*each)) for each in tables_of(shown) if each[1])
    return Group(title, *notes, *(part for parts in filled for part in parts))


def tables_of(shown: Shown) -> list[tuple[Row, list[Row]]]:
    """Return the tables of GPUs, of their users and of waiting starts: headings and rows."""
    if isinstance(shown, Inventory):
        gpus = [row for gpu in shown.gpus for row in _gpu_rows(gpu)]
        devices = (device for gpu in shown.gpus for device in (gpu.whole, *gpu.slices))
        users = [row for device in devices for row in _users(device, shown.now)]
        queue: list[Row] = [
            (str(number), one.user, str(one.count), age(one.since, shown.now), one.session)
            for number, one in enumerate(shown.queue, 1)
        ]
        waiting = ("WAITING", "USER", "GPUS", "SINCE", "FOR")
        return [(_GPU_HEADINGS, gpus), (_USER_HEADINGS, users), (waiting, queue)]
    if isinstance(shown, ClusterGpus):
        partitions: list[Row] = [
            (one.partition, one.gpu or "-", str(one.nodes), str(one.free), str(one.total))
            for one in shown.nodes
        ]
        lefts = ("?" if job.until is None else times.left(job.until) for job in shown.jobs)
        jobs: list[Row] = [
            (job.user, job.job, str(job.gpus), job.partition, job.nodes, left)
            for job, left in zip(shown.jobs, lefts, strict=True)
        ]
        headings = ("USER", "JOB", "GPUS", "PARTITION", "NODES", "TIME LEFT")
        return [(("PARTITION", "GPU", "NODES", "FREE", "TOTAL"), partitions), (headings, jobs)]
    gpus, users = [], []
    for one in shown:
        if one.answer is None:
            gpus.append((one.host, *[""] * (len(_GPU_HEADINGS) - 1), "no answer"))
            continue
        (_, own), (_, used), _ = tables_of(one.answer)
        gpus += [(one.host, *row) for row in own]
        users += [(one.host, *row) for row in used]
    return [(("HOST", *_GPU_HEADINGS), gpus), (("HOST", *_USER_HEADINGS), users)]


def notes_of(shown: Shown) -> tuple[str, ...]:
    """Return complaints of drivers, and notes on what is unknown."""
    if isinstance(shown, Inventory):
        return shown.remarks
    if isinstance(shown, ClusterGpus):
        hidden = f"{shown.hidden} more GPUs are in use; Slurm hides their users"
        return (hidden,) if shown.hidden else ()
    answered = ((one.host, one.answer) for one in shown if one.answer is not None)
    return tuple(f"{host}: {remark}" for host, found in answered for remark in found.remarks)


def document(shown: Shown, host: str) -> Any:
    """Return the JSON object of a host, or the array of a pool's hosts and their errors."""
    if isinstance(shown, Inventory):
        return to_json(shown, host)
    if isinstance(shown, ClusterGpus):
        ends = [None if job.until is None else times.utc(job.until) for job in shown.jobs]
        jobs = [asdict(job) | {"until": end} for job, end in zip(shown.jobs, ends, strict=True)]
        return {"host": host} | asdict(shown) | {"jobs": jobs}
    return [
        document(one.answer, one.host)
        if one.answer is not None
        else {"host": one.host, "error": one.error.message if one.error else None}
        for one in shown
    ]


def _gpu_rows(gpu: Gpu) -> Iterator[Row]:
    limit = "" if gpu.power_limit is None else f" / {gpu.power_limit:.0f}"
    yield (
        str(gpu.index),
        gpu.name.removeprefix("NVIDIA "),
        _memory(gpu.whole),
        "?" if gpu.busy is None else f"{gpu.busy} %",
        "?" if gpu.temperature is None else f"{gpu.temperature}C",
        "?" if gpu.power is None else f"{gpu.power:.0f}{limit} W",
        gpu.state,
    )
    for part in gpu.slices:
        yield (part.place, f"MIG {part.profile}", _memory(part), "", "", "", part.state())


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


def _memory(device: Device) -> str:
    return f"{size(device.memory_used)} / {size(device.memory_total)}"
