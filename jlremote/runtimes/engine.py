"""The container engines by the commands that drive them."""

from __future__ import annotations

from dataclasses import dataclass

from jlremote.host.script import command_line

Argv = tuple[str, ...]


@dataclass(frozen=True)
class Engine:
    """A container engine's command: calling it makes an argv, so that no other way begins one.

    Attributes:
        name: what `--runtime` calls it.
        command: the words that every one of its argvs begins with.
    """

    name: str
    command: Argv

    def __call__(self, *words: str) -> Argv:
        """Return the argv of one of its commands: `engine("start", "cont1")`."""
        return (*self.command, *words)

    def shown(self, *words: str) -> str:
        """Return such a command as a person would type it."""
        return command_line(self(*words))


DOCKER = Engine("docker", ("docker",))
