"""The container engines by the commands that drive them, and what one does otherwise.

They all take docker's commands, so there is one way to drive them and a table of differences.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Literal

from jlremote.host.shell_text import command_line
from jlremote.host.sudo import SUDO, SUDO_ALONE, SUDO_IF_KNOWN

Argv = tuple[str, ...]


@dataclass(frozen=True)
class Kind:
    """What engines of one kind do otherwise than others.

    Attributes:
        program: its command.
        pulls_never: whether `create` can be told not to pull.
        gpus: how a container is given GPUs: docker's own option, CDI devices, or the variables of
            NVIDIA's first tool.
        shows_bytes: whether a pull on a terminal shows how many bytes have come.
        no_entrypoint: what an image's `ENTRYPOINT` is set to so that it has none.
        short_names: whether a name without a registry means Docker Hub; podman goes by its settings
            and asks, where nobody is to be asked.
        keeps_layers: whether a pull that is broken off leaves the layers that have come whole.
        init_tells_all: whether its `--init` can pass a signal on to all that a command began.
        ends_options: whether `--` may stand before an image; NVIDIA's first tool takes the image
            for its value.
        everyday: the engine whose own command does all but to make containers, `None` for itself.
        daemon: the service that must run, `None` where there is none.
        install: what a person types to have it on Debian or Ubuntu.
    """

    program: str
    pulls_never: bool = True
    gpus: Literal["option", "devices", "variables"] = "option"
    shows_bytes: bool = True
    no_entrypoint: str = '[""]'
    short_names: bool = True
    keeps_layers: bool = False
    init_tells_all: bool = True
    ends_options: bool = True
    everyday: str | None = None
    daemon: str | None = "docker"
    install: str = "sudo apt install docker.io"


KINDS = (
    Kind("docker"),
    Kind(
        "podman",
        gpus="devices",
        shows_bytes=False,
        no_entrypoint="[]",
        short_names=False,
        keeps_layers=True,
        init_tells_all=False,
        daemon=None,
        install="sudo apt install podman uidmap slirp4netns",
    ),
    # It only changes what `create` and `run` do. Its second version is a script that takes the
    # arguments of all else apart at blanks, so `exec … sh -c 'a b'` would run `a`. Docker before
    # 20.10, which it may be in front of, knows no `create --pull`.
    Kind(
        "nvidia-docker",
        pulls_never=False,
        gpus="variables",
        ends_options=False,
        everyday="docker",
        install="sudo apt install nvidia-docker2",
    ),
)
# What is said to the program itself where another one does the rest.
_ITS_OWN = (("create",), ("run",), ("--version",))


@dataclass(frozen=True)
class Engine:
    """A container engine's command: calling it makes an argv, so that no other way begins one.

    Attributes:
        kind: what it does otherwise than others.
        command: the words that every one of its argvs begins with.
    """

    kind: Kind
    command: Argv

    @property
    def behind_sudo(self) -> bool:
        """Whether it is driven as root."""
        return self.command[:1] == SUDO[:1]

    @property
    def name(self) -> str:
        """What `--runtime` calls it, and what a session's record remembers."""
        return f"sudo {self.kind.program}" if self.behind_sudo else self.kind.program

    def __call__(self, *words: str) -> Argv:
        """Return the argv of one of its commands: `engine("start", "cont1")`."""
        return (*self.command[:-1], self._program(words), *words)

    def shown(self, *words: str) -> str:
        """Return such a command as a person would type it."""
        sudo = SUDO[:1] if self.behind_sudo else ()
        return command_line((*sudo, self._program(words), *words))

    def _program(self, words: Argv) -> str:
        everyday = None if words[:1] in _ITS_OWN else self.kind.everyday
        return everyday or self.kind.program

    @property
    def everyday(self) -> Engine:
        """The engine that it stands in front of, or itself."""
        program = self.kind.everyday or self.kind.program
        return ENGINES[f"sudo {program}" if self.behind_sudo else program]

    def unasked(self) -> Engine:
        """Return the engine as it works where `sudo` is given no password."""
        return self._by(SUDO_ALONE)

    def if_known(self) -> Engine:
        """Return the engine as it works where nobody is to be asked for the password of `sudo`."""
        return self._by(SUDO_IF_KNOWN)

    def _by(self, sudo: Argv) -> Engine:
        rest = self.command[len(SUDO) :]
        return replace(self, command=(*sudo, *rest)) if self.behind_sudo else self

    def told(self, **variables: str) -> Engine:
        """Return the engine with variables in its environment; `sudo` lets no others through."""
        words = tuple(f"{name}={value}" for name, value in variables.items())
        prefix = (*SUDO, *words) if self.behind_sudo else ("env", *words)
        return replace(self, command=(*prefix, self.kind.program))


def _named() -> dict[str, Engine]:
    direct = {kind.program: Engine(kind, (kind.program,)) for kind in KINDS}
    privileged = (Engine(kind, (*SUDO, kind.program)) for kind in KINDS)
    return direct | {engine.name: engine for engine in privileged}


ENGINES: Mapping[str, Engine] = MappingProxyType(_named())
DOCKER = ENGINES["docker"]
PODMAN = ENGINES["podman"]
