"""The GPUs of a host as JSON."""

from __future__ import annotations

import datetime
from typing import Any

from jlremote.gpus.inventory import Device, Gpu, Inventory


def to_json(inventory: Inventory, host: str) -> dict[str, Any]:
    """Return the stable document of `--json`: memory in MiB, power in W, times in UTC."""
    return {
        "host": host,
        "time": _moment(inventory.now),
        "gpus": [_gpu(gpu) for gpu in inventory.gpus],
        "notes": list(inventory.notes),
    }


def _gpu(gpu: Gpu) -> dict[str, Any]:
    return {
        "index": gpu.index,
        "name": gpu.name,
        "state": gpu.state,
        **_device(gpu.whole),
        "busy_percent": gpu.busy,
        "temperature": gpu.temperature,
        "power": gpu.power,
        "power_limit": gpu.power_limit,
        "mig": [_part(part) for part in gpu.slices] if gpu.mig else None,
    }


def _part(part: Device) -> dict[str, Any]:
    known = {"place": part.place, "profile": part.profile, "state": part.state()}
    return known | _device(part)


def _device(device: Device) -> dict[str, Any]:
    return {
        "uuid": device.uuid,
        "memory_used": device.memory_used,
        "memory_total": device.memory_total,
        "in_use": device.in_use,
        "processes": [vars(p) | {"since": _moment(p.since)} for p in device.processes],
        "kept_for": [
            {"kind": c.kind, "name": c.name, "user": c.user, "since": _moment(c.since)}
            for c in device.claims
        ],
    }


def _moment(seconds: float | None) -> str | None:
    if seconds is None:
        return None
    moment = datetime.datetime.fromtimestamp(seconds, datetime.UTC)
    return moment.isoformat(timespec="seconds").replace("+00:00", "Z")
