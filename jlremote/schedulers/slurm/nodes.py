"""Partitions and their GPUs, as `sinfo` tells them; accounting is not needed."""

from __future__ import annotations

import re
from collections import defaultdict

from jlremote.host.answers import understood
from jlremote.schedulers.contract import GpuNodes, SchedulerSilent
from jlremote.text import one_line

_WIDTH = 200
_COLUMNS = ("NodeHost", "PartitionName", "Gres", "GresUsed", "StateLong")
# One line a node and partition; GresUsed is in no single-letter format.
ARGV = ("sinfo", "--Node", f"--Format={','.join(f'{name}:{_WIDTH}' for name in _COLUMNS)}")
HEADING = "HOSTNAMES"
_GPU = re.compile(r"(?:^|,)gpu(?::(?P<type>[^:,()]+))??:(?P<count>\d+)")
_OPEN = ("idle", "mixed", "allocated", "completing", "planned")


@understood("Slurm")
def read_gpus(printed: str) -> list[GpuNodes]:
    """Return the GPUs by partition and type, also partitions without any.

    Raises:
        SchedulerSilent: there is no heading.
    """
    lines = printed.splitlines()
    start = next((n for n, line in enumerate(lines) if line.startswith(HEADING)), None)
    if start is None:
        raise SchedulerSilent(
            f"Slurm does not answer: {one_line(printed)[:300] or 'sinfo printed nothing'}"
        )
    counts: dict[tuple[str, str], list[int]] = defaultdict(lambda: [0, 0, 0])
    for line in lines[start + 1 :]:
        columns = [line[at : at + _WIDTH].strip() for at in range(0, len(line), _WIDTH)]
        if len(columns) != len(_COLUMNS):
            continue
        _, partition, gres, used, state = columns
        has, busy = _gpus(gres), _gpus(used)
        for kind in has or {"": 0}:
            row = counts[partition, kind]
            total = has.get(kind, 0)
            row[0] += 1
            row[1] += total
            row[2] += total - busy.get(kind, 0) if state.rstrip("*~#!%$@^-") in _OPEN else 0
    return [GpuNodes(*key, *row) for key, row in sorted(counts.items())]


def _gpus(gres: str) -> dict[str, int]:
    """Return the count of each type in `gpu:a100:2(S:0-1),gpu:1`; without a type it is `gpu`."""
    found: dict[str, int] = defaultdict(int)
    for each in _GPU.finditer(re.sub(r"\([^)]*\)", "", gres)):
        found[each["type"] or "gpu"] += int(each["count"])
    return dict(found)
