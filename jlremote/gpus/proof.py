"""The proof that a session which was just started can use the GPUs that it was asked for.

An engine may drop the request without an error, and a broken driver shows only in the container.
"""

from __future__ import annotations

import csv
import re
from itertools import pairwise

from jlremote.place.host.contract import records
from jlremote.text import one_line
from jlremote.untrusted import count

# Without persistence mode the driver may load for several seconds on its first use. Images without
# `nvidia-smi` show by devices (NVIDIA, Jetson, WSL, AMD) and NVIDIA's library what they have got.
# Apptainer names the folder of the driver's libraries in LD_LIBRARY_PATH.
PROOF = r"""
if command -v nvidia-smi >/dev/null 2>&1; then
  limit=; ! command -v timeout >/dev/null || limit='timeout 30'
  said=$($limit nvidia-smi -L 2>&1); printf 'nvidia-smi\037%s\037%s\036' "$?" "$said"
else
  for one in /dev/nvidia[0-9]* /dev/nvhost-gpu /dev/dxg /dev/kfd; do
    [ ! -e "$one" ] || printf 'device\037%s\036' "$one"
  done
  for one in /usr/lib/*/libcuda.so.1 /usr/lib64/libcuda.so.1 /usr/lib/wsl/lib/libcuda.so.1; do
    [ ! -e "$one" ] || printf 'driver\037%s\036' "$one"
  done
  IFS=:
  for one in ${LD_LIBRARY_PATH-}; do
    [ ! -e "$one/libcuda.so.1" ] || printf 'driver\037%s\036' "$one"
  done
  ! ldconfig -p 2>/dev/null | grep -q libcuda.so.1 || printf 'driver\037ldconfig\036'
fi
"""

# The GPUs of the host: those that its driver has and that have a device. Nothing where the driver
# does not tell (Jetson, WSL, AMD).
ON_HOST = r"""
for one in /proc/driver/nvidia/gpus/*/; do [ ! -d "$one" ] || echo driver; done
for one in /dev/nvidia[0-9]*; do [ ! -e "$one" ] || echo device; done
"""


def requested(engine: str, on_host: str = "") -> int:
    """Return how many GPUs a value of the engine's `--gpus` asks for at least."""
    asked = _parts(engine)
    if wants_all(engine):
        return max(1, min(on_host.count("driver"), on_host.count("device")))
    if "device" in asked:
        return asked["device"].count(",") + 1
    return count(asked.get("count", "1")) or 1


def wants_all(engine: str) -> bool:
    """Return whether a value of the engine's `--gpus` asks for all GPUs."""
    return _parts(engine).get("count") in ("all", "-1")


def _parts(engine: str) -> dict[str, str]:
    if re.fullmatch(r"device=[^=\"]*", engine):
        return {"device": engine.removeprefix("device=")}
    [fields] = csv.reader([engine])  # docker's notation, where a word alone is the count
    words = [field if "=" in field else f"count={field}" for field in fields]
    return dict(word.split("=", 1) for word in words)


def seen(output: str, asked: int) -> tuple[int, str | None]:
    """Return how many GPUs a container has, from the output of `PROOF`.

    With it comes why these are fewer than it `asked` for, `None` if they are not.
    """
    told = [(name.strip(), fields) for name, *fields in records(output)]
    has = 0
    for name, fields in told:
        if name == "nvidia-smi":
            status, said = fields[0], " ".join(fields[1:])
            if status != "0":
                return 0, f"`nvidia-smi` in it says `{one_line(said).rstrip('.') or 'nothing'}`"
            kinds = [line.split(maxsplit=1)[0] for line in said.splitlines() if line.strip()]
            divided = sum(pair == ("GPU", "MIG") for pair in pairwise(kinds))
            has = kinds.count("GPU") + kinds.count("MIG") - divided
    devices = [fields[0] for name, fields in told if name == "device"]
    nvidia = sum(device.startswith("/dev/nvidia") for device in devices)
    if nvidia and not any(name == "driver" for name, _ in told):
        return nvidia, "it has their devices, and not the driver's `libcuda.so.1`"
    if devices and not nvidia:  # only NVIDIA has a device for each GPU
        return 0, None
    has = has or nvidia
    few = f"it has {has or 'none'} of the {asked} that you asked for"
    return has, few if has < asked else None
