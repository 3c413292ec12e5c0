"""A stand-in for the hardware: an `nvidia-smi` that prints a state written by the test."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from uuid import uuid4

# Answers as the real one does: fields by name, one unknown field refuses the whole query.
PROGRAM = """\
#!/usr/bin/python3 -IS
import sys, time
with open("FOLDER/gpus.state", encoding="utf-8") as file:
    state = eval(file.read())  # `json` would take as long to load as Python to start
option, _, value = sys.argv[1].partition("=")
time.sleep(state["delay"])
if state["failure"]:
    print(state["failure"][1])
    sys.exit(state["failure"][0])
if option == "-L":
    print(state["list"], end="")
elif option == "-q":
    print(state["document"], end="")
else:
    rows = state["gpus"] if option == "--query-gpu" else state["processes"]
    known = set(state["fields"]) if option == "--query-gpu" else {
        "gpu_uuid", "pid", "used_memory", "process_name"}
    for name in value.split(","):
        if name not in known:
            print(f'Field "{name}" is not a valid field to query.')
            sys.exit(2)
    for row in rows:
        print(", ".join(str(row[name]) for name in value.split(",")))
"""

IDLE = {
    "name": "NVIDIA H200",
    "memory.used": 4,
    "memory.total": 143771,
    "utilization.gpu": 0,
    "temperature.gpu": 35,
    "power.draw": 79.16,
    "power.limit": "700.00",
    "display_active": "Disabled",
    "mig.mode.current": "Disabled",
}


@dataclass
class Gpus:
    """The GPUs of a host that has none."""

    folder: Path  # a folder on the host's PATH
    uuids: list[str] = field(default_factory=list)  # new for each test: leases are the machine's
    state: dict[str, Any] = field(default_factory=dict)

    def install(self, count: int = 2) -> None:
        """Give the host a number of free GPUs."""
        self.uuids = [f"GPU-{uuid4()}" for _ in range(count)]
        gpus = [{"index": index, "uuid": uuid} | IDLE for index, uuid in enumerate(self.uuids)]
        self.state = {"gpus": gpus, "fields": ["index", "uuid", *IDLE], "processes": []}
        self.state |= {"list": "", "document": "", "delay": 0, "failure": None}
        program = self.folder / "nvidia-smi"
        self.write()
        program.write_text(PROGRAM.replace("FOLDER", str(self.folder)))
        program.chmod(0o755)

    def write(self) -> None:
        """Replace the state in one step, as the host may read it at this moment."""
        new = self.folder / "gpus.state.new"
        new.write_text(repr(self.state), encoding="utf-8")
        new.replace(self.folder / "gpus.state")

    def change(self, index: int, **values: Any) -> None:
        """Change fields of a GPU; `_` stands for the dot in a field's name."""
        row = self.state["gpus"][index]
        for name, value in values.items():
            [known] = [known for known in row if known.replace(".", "_") == name]
            row[known] = value
        self.write()

    def occupy(self, index: int, pid: int, *, memory: int = 1002, busy: int = 100) -> None:
        """Have a process compute on a GPU."""
        row = {"gpu_uuid": self.uuids[index], "pid": pid, "used_memory": memory}
        self.state["processes"].append(row | {"process_name": "python3"})
        self.change(index, memory_used=memory + 9, utilization_gpu=busy)

    def free(self, index: int) -> None:
        """End what computes on a GPU."""
        kept = [row for row in self.state["processes"] if row["gpu_uuid"] != self.uuids[index]]
        self.state["processes"] = kept
        idle = {"memory_used": IDLE["memory.used"], "utilization_gpu": IDLE["utilization.gpu"]}
        self.change(index, **idle)

    def remove(self) -> None:
        """Remove `nvidia-smi`."""
        (self.folder / "nvidia-smi").unlink(missing_ok=True)
