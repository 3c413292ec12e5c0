"""The GPUs that an engine gave to a container, as the value of docker's `--gpus`."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

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
        return _visible(config)
    # The first nvidia-docker's way.
    paths = (device.get("PathInContainer", "") for device in host.get("Devices") or [])
    return _named(found[1] for path in paths if (found := _DEVICE.fullmatch(path)))


def _visible(config: Mapping[str, Any]) -> str | None:
    variables = dict(text.partition("=")[::2] for text in config.get("Env") or [] if text)
    seen = variables.get(VISIBLE, "")
    return None if seen in ("", "void", "none") else _named(seen.split(","))


def _named(devices: Iterable[str]) -> str | None:
    """Return the value that names devices: indices, UUIDs, or the word for all."""
    names = list(devices)
    if "all" in names:
        return "all"
    return f"device={','.join(names)}" if names else None


def shortened(value: str) -> str:
    """Return a value with UUIDs as short as `--gpus` takes them."""
    return re.sub(r"\b((?:GPU|MIG)-[0-9a-f]{8})-[0-9a-f-]+", r"\1", value)
