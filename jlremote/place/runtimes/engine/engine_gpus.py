"""A container's GPUs: the flags that give them, those that it has, and how it loses them.

Values are those of docker's `--gpus`: `all`, a number, `device=0,3`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

from jlremote.errors import JlrError, Usage
from jlremote.place.host.contract import records
from jlremote.place.runtimes.engine.kinds import Engine
from jlremote.text import one_line

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
    "unknown device|no such device": "`nvidia-smi -L` on the host lists its GPUs",
    "bpf|device rules|cgroup": (
        "`sudo nvidia-ctk config --set nvidia-container-cli.no-cgroups --in-place` on the host is "
        "needed where the engine is rootless"
    ),
}


def gpu_flags(engine: Engine, value: str | None) -> tuple[str, ...]:
    """Return the flags of `create` that give GPUs (`Usage`: only docker takes the value)."""
    if value is None:
        return ()
    if engine.kind.gpus == "option":  # docker reads CSV, where a field with a comma needs quotes
        listed = re.fullmatch(r"device=[^=\"]*,[^=\"]*", value)
        return (f'--gpus="{value}"' if listed else f"--gpus={value}",)
    names = _names(engine, value)
    if engine.kind.gpus == "devices":
        return tuple(f"--device={CDI}{name}" for name in names)
    return (f"--env={VISIBLE}={','.join(names)}",)


def mend(complaint: str) -> str | None:
    """Return the hint for an engine's error about GPUs, `None` if the error names no cause."""
    found = (text for words, text in _MENDS.items() if re.search(words, complaint, re.IGNORECASE))
    return next(found, None)


def with_gpus(engine: Engine, value: str | None) -> Engine:
    """Return the engine to call `create` on: the first nvidia-docker reads a variable."""
    if value is None or engine.kind.gpus != "variables" or value == "all":
        return engine
    return engine.with_variables(NV_GPU=",".join(_names(engine, value)))


def _names(engine: Engine, value: str) -> list[str]:
    if value == "all":
        return ["all"]
    if re.fullmatch(r"\d{1,4}", value, re.ASCII):  # a host may tell any number
        return [str(index) for index in range(int(value))]
    devices = value.strip("\"'").removeprefix("device=")
    if "=" in devices:
        hint = "`--gpus` takes `auto`, `2`, `0,3` or UUIDs with any engine"
        raise Usage(f"{engine.name} does not take docker's `--gpus {value}`", hint=hint)
    return devices.split(",")


GPUS_LABEL = "org.jlremote.gpus"
# The Container Device Interface, podman's way since NVIDIA's toolkit 1.12.
CDI = "nvidia.com/gpu="
VISIBLE = "NVIDIA_VISIBLE_DEVICES"
_DEVICE = re.compile(r"/dev/nvidia(\d+)")


def gpus_of(inspected: Mapping[str, Any]) -> str | None:
    """Return the engine's value for the GPUs that a container was created with, `None` for none."""
    host, config = inspected["HostConfig"], inspected["Config"]
    for request in host.get("DeviceRequests") or []:
        if request.get("DeviceIDs"):
            return _named(name.rpartition(CDI)[2] for name in request["DeviceIDs"])
        amount = request.get("Count", 0)
        return "all" if amount < 0 else str(amount)
    words = [word for word in config.get("CreateCommand") or [] if word]  # podman's note
    devices = [word.partition(CDI)[2] for word in words if CDI in word]
    if devices:
        return _named(devices)
    if host.get("Runtime") == "nvidia":
        variables = dict(text.partition("=")[::2] for text in config.get("Env") or [] if text)
        seen = variables.get(VISIBLE, "")
        return None if seen in ("", "void", "none") else _named(seen.split(","))
    # The first nvidia-docker's way.
    paths = (device.get("PathInContainer", "") for device in host.get("Devices") or [])
    return _named(found[1] for path in paths if (found := _DEVICE.fullmatch(path)))


def _named(devices: Iterable[str]) -> str | None:
    names = list(devices)
    if "all" in names:
        return "all"
    return f"device={','.join(names)}" if names else None


def shortened(value: str) -> str:
    """Return a value with UUIDs as short as `--gpus` takes them."""
    return re.sub(r"\b((?:GPU|MIG)-[0-9a-f]{8})-[0-9a-f-]+", r"\1", value)


# Free of cost without GPUs: the toolkit mounts `nvidia-smi` along with them.
FAULT_CHECK = r"""
if command -v nvidia-smi >/dev/null 2>&1; then
  limit=; ! command -v timeout >/dev/null || limit='timeout 5'
  fault=$($limit nvidia-smi -L 2>&1) || printf 'gpu fault\037%s\036' "${fault:-no answer}"
fi
"""


def gpu_fault(output: str, container: str, restart: str) -> JlrError | None:
    """Return the error of a container that lost its GPUs, from the output of `FAULT_CHECK`."""
    found = (words for name, *words in records(output) if name.strip() == "gpu fault")
    if (words := next(found, None)) is None:
        return None
    said = one_line(" ".join(words)).rstrip(".")
    what = f"the container `{container}` cannot use its GPUs (`{said}`)"
    mend = f"`{restart}` on the host fixes it; its kernels end"
    if "Failed to initialize NVML: Unknown Error" in said:
        what = (
            f"the container `{container}` has lost its GPUs (`{said}`): systemd on the host was "
            "reloaded and took away the container's permission for them"
        )
    elif "version mismatch" in said:
        what += ": the host's driver was updated since the container was started"
        mend += "; if it does not, reboot the host"
    return JlrError(what, hint=mend)
