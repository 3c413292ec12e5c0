"""Output of the snapshot script, from recorded and hand-made pieces."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from jlremote.gpus.inventory import Inventory
from jlremote.gpus.snapshot import read
from jlremote.gpus.snapshot_script import GPU_FIELDS
from jlremote.host.answers import FIELD, RECORD

DATA = Path(__file__).parent / "data"
NOW, BOOT = 1_800_000_000, "e0a4e7f5-8d41-4f2a-8ce9-97c50418a61d"

# The order in which the recorded file has them.
RECORDED_FIELDS = (
    "index,uuid,name,memory.used,memory.total,utilization.gpu,temperature.gpu,power.draw,"
    "driver_version,mig.mode.current,compute_mode,pci.bus_id"
)
FIELDS = GPU_FIELDS[0]


def record(name: str, *fields: object) -> str:
    return "".join(f"{field}{FIELD}" for field in (name, *fields)) + RECORD


def answer(
    gpus: str,
    *records: str,
    fields: str = FIELDS,
    status: int = 0,
    processes: str = "",
    containers: str = "",
    user: str = "ada",
) -> str:
    """Return an output of the snapshot script."""
    return "".join(
        (
            record("host", NOW, "1000.50 90.1", BOOT, user, 100),
            record("gpus", fields, status, gpus),
            record("processes", processes),
            *records,
            record("containers", containers),
        )
    )


def row(index: int, *, used: object = 4, total: object = 81920, busy: object = 0) -> str:
    values = (index, uuid(index), "NVIDIA A100", used, total, busy, 30, "60.1", "400.00")
    return ", ".join(map(str, (*values, "Disabled", "Disabled")))


def uuid(index: int) -> str:
    return f"GPU-{index:08x}-0000-0000-0000-000000000000"


def inventory(
    rows: Sequence[str], *records: str, processes: str = "", containers: str = ""
) -> Inventory:
    text = answer("\n".join(rows), *records, processes=processes, containers=containers)
    return read(text, "dgx")


def process(index: int, pid: int = 100) -> str:
    return f"{uuid(index)}, {pid}, 5000, /usr/bin/python3"
