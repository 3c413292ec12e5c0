"""A container's GPUs: the flags of each kind of engine.

Values are those of docker's `--gpus`: `all`, a number, `device=0,3`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from jlremote.errors import Usage
from jlremote.place.runtimes.engine.engine import Engine
from jlremote.place.runtimes.engine.given_gpus import CDI, VISIBLE

# Why a container gets no GPUs though NVIDIA's toolkit is there, and what mends that.
_MENDS: Mapping[str, str] = {
    "update your driver|requirement error|driver version is insufficient": (
        "`nvidia-smi` on the host shows the CUDA that its driver is for: update the driver there, "
        "or take an image for an older CUDA"
    ),
    "library version mismatch": "`sudo reboot` on the host loads the driver that it has now",
    "libnvidia-ml|driver not loaded|driver rpc|nvml error": (
        "`nvidia-smi` on the host must work first: its driver is missing or does not run"
    ),
    "unknown device|no such device": "`jlr gpus HOST` lists the GPUs that are there",
    "bpf|device rules|cgroup": (
        "`sudo nvidia-ctk config --set nvidia-container-cli.no-cgroups --in-place` on the host is "
        "needed where the engine is rootless"
    ),
}


def gpu_flags(engine: Engine, value: str | None) -> tuple[str, ...]:
    """Return the flags of `create` that give a container GPUs.

    Raises:
        Usage: only docker takes the value.
    """
    if value is None:
        return ()
    if engine.kind.gpus == "option":
        return (f"--gpus={_quoted(value)}",)
    names = _names(engine, value)
    if engine.kind.gpus == "devices":
        return tuple(f"--device={CDI}{name}" for name in names)
    return (f"--env={VISIBLE}={','.join(names)}",)


def mend(complaint: str) -> str | None:
    """Return what gives a container GPUs, by the engine's error; `None` if that names no cause."""
    found = (text for words, text in _MENDS.items() if re.search(words, complaint, re.IGNORECASE))
    return next(found, None)


def with_gpus(engine: Engine, value: str | None) -> Engine:
    """Return the engine to call `create` on: the first nvidia-docker reads a variable."""
    if value is None or engine.kind.gpus != "variables" or value == "all":
        return engine
    return engine.with_variables(NV_GPU=",".join(_names(engine, value)))


def _quoted(value: str) -> str:
    """Return the value as docker reads it: CSV, where a field with a comma needs quotes."""
    return f'"{value}"' if re.fullmatch(r"device=[^=\"]*,[^=\"]*", value) else value


def _names(engine: Engine, value: str) -> list[str]:
    if value == "all":
        return ["all"]
    if re.fullmatch(r"\d{1,4}", value, re.ASCII):  # a host may tell any number
        return [str(index) for index in range(int(value))]
    devices = value.strip("\"'").removeprefix("device=")
    if "=" in devices:
        raise Usage(
            f"{engine.name} does not take docker's `--gpus {value}`",
            hint="`--gpus` takes `auto`, `2`, `0,3` or UUIDs with any engine",
        )
    return devices.split(",")
