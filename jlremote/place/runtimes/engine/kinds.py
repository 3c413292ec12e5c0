"""The container engines: their commands, and a table of their differences."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Literal

from jlremote.place.host.shell_text import command_line
from jlremote.place.host.sudo import SUDO, SUDO_ALONE, SUDO_IF_KNOWN

Argv = tuple[str, ...]


@dataclass(frozen=True)
class EngineKind:
    """The properties of one kind of engine."""

    program: str
    pulls_never: bool = False  # whether each version of it has `create --pull=never`
    # How a container gets GPUs: docker's option, CDI devices, or variables of NVIDIA's first tool.
    gpus: Literal["option", "devices", "variables"] = "option"
    shows_bytes: bool = True  # whether a pull on a terminal shows the bytes that have come
    no_entrypoint: str = '[""]'  # the value of `ENTRYPOINT` that leaves an image without one
    # Whether a name without a registry means Docker Hub; of podman the host's settings decide.
    short_names: bool = True
    keeps_layers: bool = False  # whether an aborted pull leaves the complete layers
    # Whether a client that starts a container in a terminal passes its own signals on.
    start_passes_signals: bool = False
    init_tells_all: bool = True  # whether its `--init` can signal all processes of a command
    init_package: str = "tini"  # the package with the program of its `--init`
    # Whether `--` may precede an image; NVIDIA's first tool takes the image for its value.
    ends_options: bool = True
    everyday: str | None = None  # the engine that does all but create containers, if another
    daemon: str | None = "docker"  # the service that must run, `None` without one


KINDS = (
    EngineKind("docker"),
    EngineKind(
        "podman",
        pulls_never=True,
        gpus="devices",
        shows_bytes=False,
        no_entrypoint="[]",
        short_names=False,
        keeps_layers=True,
        init_tells_all=False,
        init_package="catatonit",
        start_passes_signals=True,
        daemon=None,
    ),
    # It only creates containers: its second version joins the words of other commands and splits
    # them at spaces.
    EngineKind("nvidia-docker", gpus="variables", ends_options=False, everyday="docker"),
)
# The commands for the program itself, if another engine does the rest.
_ITS_OWN = (("create",), ("run",), ("--version",))


@dataclass(frozen=True)
class Engine:
    """A container engine's command; a call of it is the only way to make one of its argvs."""

    kind: EngineKind
    command: Argv  # the words that each of its argvs begins with

    @property
    def behind_sudo(self) -> bool:
        """Whether it runs as root by `sudo`."""
        return self.command[:1] == SUDO[:1]

    @property
    def name(self) -> str:
        return f"sudo {self.kind.program}" if self.behind_sudo else self.kind.program

    def __call__(self, *words: str) -> Argv:
        """Return the argv of one of its commands: `engine("start", "cont1")`."""
        return (*self.command[:-1], self._program(words), *words)

    def shown(self, *words: str) -> str:
        sudo = SUDO[:1] if self.behind_sudo else ()
        return command_line((*sudo, self._program(words), *words))

    def _program(self, words: Argv) -> str:
        everyday = None if words[:1] in _ITS_OWN else self.kind.everyday
        return everyday or self.kind.program

    @property
    def everyday(self) -> Engine:
        """The engine that does all but create containers, or itself."""
        program = self.kind.everyday or self.kind.program
        return ENGINES[f"sudo {program}" if self.behind_sudo else program]

    def unasked(self) -> Engine:
        """Return the engine with a `sudo` that is given no password."""
        return self._by(SUDO_ALONE)

    def if_known(self) -> Engine:
        """Return the engine with a `sudo` that is given its password only if it is known."""
        return self._by(SUDO_IF_KNOWN)

    def _by(self, sudo: Argv) -> Engine:
        rest = self.command[len(SUDO) :]
        return replace(self, command=(*sudo, *rest)) if self.behind_sudo else self

    def with_variables(self, **variables: str) -> Engine:
        """Return the engine with environment variables, which `sudo` would drop otherwise."""
        words = tuple(f"{name}={value}" for name, value in variables.items())
        if self.behind_sudo:
            return replace(self, command=(*SUDO, *words, *self.command[len(SUDO) :]))
        return replace(self, command=("env", *words, *self.command))


ENGINES: Mapping[str, Engine] = {
    engine.name: engine
    for engine in (Engine(kind, (*sudo, kind.program)) for sudo in ((), SUDO) for kind in KINDS)
}
DOCKER = ENGINES["docker"]
PODMAN = ENGINES["podman"]
