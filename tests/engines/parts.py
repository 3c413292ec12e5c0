"""A session of any engine."""

from __future__ import annotations

import json
import secrets
from typing import Any

from tests.engines.conftest import IMAGE, SIF, EnginesHost
from tests.lab.laptop import Laptop

RUNTIMES = ("docker", "podman", "sudo docker", "sudo podman", "nvidia-docker", "apptainer")
FLAGS: dict[str, tuple[str, ...]] = {
    runtime: ("--runtime", runtime.split()[-1]) for runtime in RUNTIMES
}
FLAGS |= {name: (*FLAGS[name], "--sudo") for name in RUNTIMES if name.startswith("sudo ")}


def told(laptop: Laptop, *words: str) -> Any:
    result = laptop.jlr(*words, timeout=120).checked()
    return json.loads(result.stdout)


class Session:
    """A session that one engine started."""

    def __init__(self, laptop: Laptop, host: EnginesHost, runtime: str) -> None:
        self.laptop, self.host, self.runtime = laptop, host, runtime
        self.name = f"lab-{runtime.replace(' ', '-')}-{secrets.token_hex(4)}"
        self.flags = FLAGS[runtime]
        self.image = SIF if runtime == "apptainer" else IMAGE
        self.first = self.start("--image", self.image, "--env", "COLOUR=blue", *self.flags)

    def start(self, *options: str) -> dict[str, Any]:
        found = told(self.laptop, "start", "lab", self.name, *options, "--json", "--no-browser")
        assert isinstance(found, dict)
        return found

    def inside(self, command: str) -> str:
        """Run a command where the server runs."""
        return self.laptop.jlr("shell", self.name, "--", "sh", "-c", command).stdout
