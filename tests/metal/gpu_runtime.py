"""What NVIDIA's container toolkit does, for a machine that has none: GPUs for a container.

Without arguments print a CDI file (https://github.com/cncf-tags/container-device-interface) for
podman. With those of `runc` be docker's runtime: put the GPUs that `NVIDIA_VISIBLE_DEVICES` names
into the container's definition, take docker's hook out, and become `runc`.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

DRIVER = "/usr/local/nvidia"
SHARED = ("/dev/nvidiactl", "/dev/nvidia-uvm", "/dev/nvidia-uvm-tools")
OPTIONS = {"options": ["ro", "nosuid", "nodev", "rbind"]}
LIBRARIES = f"LD_LIBRARY_PATH={DRIVER}/lib64"


def gpus() -> dict[str, str]:
    """Return each GPU's device node by its index and by its UUID."""
    listed = subprocess.run([f"{DRIVER}/bin/nvidia-smi", "-L"], capture_output=True, text=True)
    uuids = [line.split("UUID: ")[1].rstrip(")") for line in listed.stdout.splitlines()]
    nodes = {str(number): f"/dev/nvidia{number}" for number in range(len(uuids))}
    return nodes | {uuid: nodes[str(number)] for number, uuid in enumerate(uuids)}


def cdi() -> dict[str, Any]:
    """Return a CDI file for the GPUs, by index, UUID and `all`."""
    names = {name: [node] for name, node in gpus().items()}
    names["all"] = sorted(set(gpus().values()))
    devices = [
        {"name": name, "containerEdits": {"deviceNodes": [{"path": node} for node in nodes]}}
        for name, nodes in names.items()
    ]
    every = {
        "deviceNodes": [{"path": path} for path in SHARED],
        "env": [LIBRARIES],
        "mounts": [OPTIONS | {"hostPath": DRIVER, "containerPath": DRIVER}],
    }
    head = {"cdiVersion": "0.5.0", "kind": "nvidia.com/gpu"}
    return head | {"devices": devices, "containerEdits": every}


def give(definition: dict[str, Any]) -> None:
    """Put the GPUs that the container's variables name into its OCI definition."""
    hooks = definition.get("hooks", {})
    asked = [h for h in hooks.get("prestart", []) if "nvidia-container" in h["path"]]
    if not asked:
        return
    hooks["prestart"] = [hook for hook in hooks["prestart"] if hook not in asked]
    variables = dict(line.partition("=")[::2] for line in definition["process"]["env"])
    named = variables.get("NVIDIA_VISIBLE_DEVICES", "")
    known = gpus()
    chosen = list(known) if named == "all" else [name for name in named.split(",") if name]
    if wrong := [name for name in chosen if name not in known]:
        sys.exit(f"nvidia-container-cli: device error: {wrong[0]}: unknown device")
    for path in (*sorted({known[name] for name in chosen}), *SHARED):
        number = Path(path).stat().st_rdev
        node = {"type": "c", "major": os.major(number), "minor": os.minor(number)}
        linux = definition["linux"]
        linux.setdefault("devices", []).append(node | {"path": path, "fileMode": 0o666})
        linux["resources"].setdefault("devices", []).append(node | {"allow": True, "access": "rwm"})
    definition["mounts"].append(OPTIONS | {"type": "bind", "source": DRIVER, "destination": DRIVER})
    definition["process"]["env"].append(LIBRARIES)


def main() -> None:
    """Print a CDI file, or be docker's runtime."""
    arguments = sys.argv[1:]
    if not arguments:
        print(json.dumps(cdi(), indent=1))
        return
    if "create" in arguments:
        bundle = arguments[arguments.index("--bundle") + 1]
        path = Path(bundle, "config.json")
        definition = json.loads(path.read_text())
        give(definition)
        path.write_text(json.dumps(definition))
    os.execvp("runc", ["runc", *arguments])


if __name__ == "__main__":
    main()
