"""A container's GPUs: the flags of each kind of engine, and what its `inspect` says of them.

Values are those of docker's `--gpus`: `all`, a number, `device=0,3`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

from jlremote.errors import Usage
from jlremote.runtimes.engine.engine import Engine

# The Container Device Interface, podman's way since NVIDIA's toolkit 1.12.
_CDI = "nvidia.com/gpu="
_DEVICE = re.compile(r"/dev/nvidia(\d+)")
_VISIBLE = "NVIDIA_VISIBLE_DEVICES"
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
        return tuple(f"--device={_CDI}{name}" for name in names)
    return (f"--env={_VISIBLE}={','.join(names)}",)


def mend(complaint: str) -> str | None:
    """Return what gives a container GPUs, by the engine's error; `None` if that names no cause."""
    found = (text for words, text in _MENDS.items() if re.search(words, complaint, re.IGNORECASE))
    return next(found, None)


def with_gpus(engine: Engine, value: str | None) -> Engine:
    """Return the engine to call `create` on: the first nvidia-docker reads a variable."""
    if value is None or engine.kind.gpus != "variables" or value == "all":
        return engine
    return engine.with_variables(NV_GPU=",".join(_names(engine, value)))


def gpus_of(inspected: Mapping[str, Any]) -> str | None:
    """Return the engine's value for the GPUs that a container was created with, `None` for none."""
    host, config = inspected["HostConfig"], inspected["Config"]
    for request in host.get("DeviceRequests") or []:
        if request.get("DeviceIDs"):
            return _named(name.removeprefix(_CDI) for name in request["DeviceIDs"])
        count = request.get("Count", 0)
        return "all" if count < 0 else str(count)
    words = config.get("CreateCommand") or []  # podman's note of its command line
    devices = [word.partition(_CDI)[2] for word in words if _CDI in word]
    if devices:
        return _named(devices)
    if host.get("Runtime") == "nvidia":
        return _visible(config)
    # The first nvidia-docker's way.
    paths = (device.get("PathInContainer", "") for device in host.get("Devices") or [])
    return _named(found[1] for path in paths if (found := _DEVICE.fullmatch(path)))


def _visible(config: Mapping[str, Any]) -> str | None:
    variables = dict(text.partition("=")[::2] for text in config.get("Env") or [])
    seen = variables.get(_VISIBLE, "")
    return None if seen in ("", "void", "none") else _named(seen.split(","))


def _named(devices: Iterable[str]) -> str | None:
    """Return the value that names devices: indices, UUIDs, or the word for all."""
    names = list(devices)
    if "all" in names:
        return "all"
    return f"device={','.join(names)}" if names else None


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
