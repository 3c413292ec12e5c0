"""Output of the snapshot script, from recorded and hand-made pieces."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from jlremote.gpus.inventory import Gpu, Inventory
from jlremote.gpus.snapshot import GPU_FIELDS, read
from jlremote.place.host.contract import FIELD, RECORD, USER_LABEL
from jlremote.place.runtimes.engine.engine_gpus import GPUS_LABEL
from tests.gpus.conftest import GpuHost
from tests.lab.accounts import all_leases
from tests.lab.laptop import Laptop

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


ID = "c0ffee42" * 8


def container(host: dict[str, Any], config: dict[str, Any], user: str = "", kept: str = "") -> str:
    """Return the lines of a container `train` that runs, as its engine describes it."""
    facts = {
        "Name": "/train",
        "State": {"StartedAt": "2026-11-22T21:08:56.123456789Z"},
        "HostConfig": host,
        "Config": {"Labels": {USER_LABEL: user, GPUS_LABEL: kept}, **config},
    }
    return f"{ID}\n{ID} {json.dumps(facts)}"


def process(index: int, pid: int = 100) -> str:
    return f"{uuid(index)}, {pid}, 5000, /usr/bin/python3"


def run(script: str, shared: Path, uid: int = 0) -> subprocess.CompletedProcess[str]:
    # `/tmp` is a part of the test's own path, too.
    here = script.replace("/tmp", str(shared))
    user = (f"--reuid={uid}", f"--regid={uid}", "--clear-groups", "sh")
    argv = ("setpriv", *user) if uid else ("sh",)
    return subprocess.run(argv, input=here, capture_output=True, text=True, timeout=30)


def mig() -> tuple[Gpu, ...]:
    first, second = (
        "GPU-7fdaf0a5-179b-f636-d15d-daf243e3ff16",
        "GPU-c92e2d5d-4a69-f1cd-4df0-305f8606705a",
    )
    rows = (
        f"0, {first}, NVIDIA A100, 9924, 81920, [N/A], 35, 90.1, 400.00, Disabled, Enabled\n"
        f"1, {second}, NVIDIA A100, 3, 81920, 0, 33, 60.0, 400.00, Disabled, Disabled"
    )
    slices = record("slices", *((DATA / name).read_text() for name in ("mig-list.txt", "mig.xml")))
    processes = f"{first}, 34965, 9865, /opt/conda/bin/python"
    return read(answer(rows, slices, processes=processes), "dgx").gpus


NEW = ("--image", "lab/jupyter")


def job(laptop: Laptop, name: str, gpus: str) -> None:
    """Begin a job that keeps GPUs, in a container that is ready sooner than a session's."""
    words = ("--image", "lab/plain", "--name", name, "--gpus", gpus, "--detach", "--")
    done = laptop.jlr("run", "lab", *words, "sleep", "600")
    assert done.status == 0, done


def asked(laptop: Laptop, *words: str) -> dict[str, Any]:
    """Return what `jlr gpus` tells of the host."""
    answer = laptop.jlr("gpus", "lab", *words, "--json")
    assert answer.status == 0, answer
    return dict(json.loads(answer.stdout))


def jobs_of(laptop: Laptop) -> dict[str, dict[str, Any]]:
    """Return the host's jobs by name."""
    listed = laptop.jlr("job", "list", "lab", "--json").stdout
    return {job["name"]: job for job in json.loads(listed)}


def leases_of(host: GpuHost) -> list[str]:
    names = [path.name for path in all_leases()]
    return [name for name in names if name.partition("+")[0] in host.gpus.uuids]
