"""Containers that a test has started on the remote host before `jlr` comes."""

from __future__ import annotations

import subprocess
from dataclasses import dataclass

from tests.lab.engine import Engine
from tests.lab.place import LabError


@dataclass(frozen=True)
class Container:
    engine: Engine
    name: str

    def execute(self, *argv: str, timeout: float = 60) -> str:
        """Run a program in the container and return its stdout."""
        return self.engine.docker("exec", self.name, *argv, timeout=timeout)

    def await_output(self, text: str, timeout: float = 90) -> None:
        """Wait until its own process has written `text`; one reader costs less than many looks."""
        docker = ("timeout", f"{timeout:.0f}", "docker", "-H", self.engine.url)
        with subprocess.Popen(
            (*docker, "logs", "--follow", self.name),
            errors="replace",
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        ) as reader:
            assert reader.stdout is not None
            found = any(text in line for line in reader.stdout)
            reader.terminate()
        if not found:
            raise LabError(f"`{self.name}` did not write `{text}`")

    def inspect(self, template: str) -> str:
        return self.engine.docker("inspect", "--format", template, self.name)

    @property
    def address(self) -> str:
        """The container's address on the engine's bridge."""
        return self.inspect("{{.NetworkSettings.IPAddress}}")

    @property
    def running(self) -> bool:
        return self.inspect("{{.State.Running}}") == "true"


class ContainerFactory:
    """Makes containers with this test's prefix, by which all are removed afterwards.

    A test that lets `jlr` create a container names it with `name()`, so that it is removed too.
    """

    def __init__(self, engine: Engine, prefix: str) -> None:
        self.engine = engine
        self.prefix = prefix
        self._count = 0

    def name(self) -> str:
        self._count += 1
        return f"{self.prefix}{self._count}"

    def __call__(
        self,
        image: str = "lab/jupyter",
        *command: str,
        options: tuple[str, ...] = (),
        name: str | None = None,
    ) -> Container:
        """Start a container; a `name` must begin with this factory's prefix."""
        container = Container(self.engine, name or self.name())
        words = command or ("sleep", "infinity")
        self.engine.docker(
            "run", "--detach", "--init", "--name", container.name, *options, image, *words
        )
        return container

    def remove_all(self) -> list[str]:
        return self.engine.remove_containers(self.prefix)
