"""MIG devices, joined from two outputs by the number of the device.

`nvidia-smi -L` has their UUIDs, `nvidia-smi -q -x` their memory and processes.
"""

from __future__ import annotations

import re
import xml.etree.ElementTree as Xml
from collections.abc import Iterator
from dataclasses import replace

from jlremote.gpus.inventory import Device, GpuProcess
from jlremote.untrusted import count, whole_number

_GPU = re.compile(r"GPU \d+: .*\(UUID: (GPU-[^()]+)\)")
_DEVICE = re.compile(r"\s+MIG (\S+)\s+Device\s+([0-9]{1,9}): \(UUID: (MIG-[^)]+)\)")


def read(listing: str, document: str) -> dict[str, tuple[Device, ...]]:
    """Return the MIG devices by their GPU's UUID.

    The place of each is its number on the GPU; those of which the document says nothing have no
    memory and no processes.
    """
    known = {gpu.findtext("uuid", ""): gpu for gpu in _gpus(document)}
    found: dict[str, list[Device]] = {}
    here = ""
    for line in listing.splitlines():
        if gpu := _GPU.match(line):
            here = gpu[1]
        elif device := _DEVICE.match(line):
            part = Device(str(whole_number(device[2])), device[3], profile=device[1])
            described = _described(part, known[here]) if here in known else part
            found.setdefault(here, []).append(described)
    return {uuid: tuple(parts) for uuid, parts in found.items()}


def _gpus(document: str) -> list[Xml.Element]:
    try:
        # The parser refuses entity bombs and fetches nothing.
        return Xml.fromstring(document).findall("gpu")  # noqa: S314
    except (Xml.ParseError, UnicodeError):
        return []


def _described(part: Device, gpu: Xml.Element) -> Device:
    for device in gpu.iterfind("mig_devices/mig_device"):
        if device.findtext("index", "").strip() == part.place:
            return replace(
                part,
                memory_used=_mebibytes(device.findtext("fb_memory_usage/used")),
                memory_total=_mebibytes(device.findtext("fb_memory_usage/total")),
                processes=tuple(_processes(gpu, _instance(device))),
            )
    return part


def _instance(element: Xml.Element) -> tuple[str, str]:
    """Return the ids that a process and its device have in common."""
    names = ("gpu_instance_id", "compute_instance_id")
    gpu, compute = (element.findtext(name, "").strip() for name in names)
    return gpu, compute


def _processes(gpu: Xml.Element, instance: tuple[str, str]) -> Iterator[GpuProcess]:
    for process in gpu.iterfind("processes/process_info"):
        pid = process.findtext("pid", "").strip()
        if _instance(process) == instance and (number := count(pid)) is not None:
            name = process.findtext("process_name", "")
            yield GpuProcess(number, name, _mebibytes(process.findtext("used_memory")))


def _mebibytes(text: str | None) -> int | None:
    amount = re.fullmatch(r"\s*(\d{1,15}) MiB\s*", text or "")
    return count(amount[1]) if amount else None
