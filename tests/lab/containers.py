"""Containers that a test has started on the remote host before `jlr` comes."""

from __future__ import annotations

from dataclasses import dataclass

from tests.lab.engine import Engine


@dataclass(frozen=True)
class Container:
    """A container in the lab's engine.

    Attributes:
        engine: where it is.
        name: its name in the engine.
    """

    engine: Engine
    name: str

    def execute(self, *argv: str, timeout: float = 60) -> str:
        """Run a program in the container and return its stdout."""
        return self.engine.docker("exec", self.name, *argv, timeout=timeout)

    def inspect(self, template: str) -> str:
        """Return what `docker inspect --format` makes of the container."""
        return self.engine.docker("inspect", "--format", template, self.name)

    @property
    def address(self) -> str:
        """The container's address on the engine's bridge."""
        return self.inspect("{{.NetworkSettings.IPAddress}}")

    @property
    def running(self) -> bool:
        """Whether its first process lives."""
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
        """Return a name that no container has."""
        self._count += 1
        return f"{self.prefix}{self._count}"

    def __call__(
        self,
        image: str = "lab/jupyter",
        *command: str,
        options: tuple[str, ...] = (),
        name: str | None = None,
    ) -> Container:
        """Start a container in the background.

        Args:
            image: one of the lab's.
            command: what runs in it; `sleep infinity` if left out.
            options: further options of `docker run`, like `--publish`.
            name: must begin with this factory's prefix; a new one if left out.
        """
        container = Container(self.engine, name or self.name())
        words = command or ("sleep", "infinity")
        self.engine.docker(
            "run", "--detach", "--init", "--name", container.name, *options, image, *words
        )
        return container

    def remove_all(self) -> list[str]:
        """Remove every container with this factory's prefix and return their names."""
        return self.engine.remove_containers(self.prefix)
