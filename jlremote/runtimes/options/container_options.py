"""What a person may ask of a new container, in the engine's own words."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from jlremote.errors import Usage


@dataclass(frozen=True)
class ContainerOptions:
    """What was asked for; `None` and `()` leave it to the image and the engine.

    Every value is passed on as the engine takes it. An item of `ulimits` or `log_options` without a
    value (`memlock=`) takes away what another place of the settings says.

    Attributes:
        volumes: `SOURCE:TARGET[:OPTIONS]`.
        environment: `NAME=VALUE`, or `NAME`.
        workdir: working folder, the server's root.
        user: `USER[:GROUP]`.
        shm_size: size of `/dev/shm`, such as `1g`.
        ulimits: `NAME=SOFT[:HARD]`.
        ipc: whose shared memory, such as `host`.
        network: which network, such as `host`.
        init: whether a small init is process 1; as a rule it is.
        remove: whether the container goes when it stops.
        log_options: `NAME=VALUE` for the log of what the container's own process says.
        packages: Python packages to install in it, as pip takes them.
        engine_arguments: further words for the engine's command line.
    """

    volumes: tuple[str, ...] = ()
    environment: tuple[str, ...] = ()
    workdir: str | None = None
    user: str | None = None
    shm_size: str | None = None
    ulimits: tuple[str, ...] = ()
    ipc: str | None = None
    network: str | None = None
    init: bool | None = None
    remove: bool | None = None
    log_options: tuple[str, ...] = ()
    packages: tuple[str, ...] = ()
    engine_arguments: tuple[str, ...] = ()

    @property
    def on_host_network(self) -> bool:
        """Whether the network is the host's, where everybody reaches what listens."""
        words = " ".join(self.engine_arguments)
        return self.network == "host" or bool(re.search(r"--net(work)?[= ]host\b", words))


NO_OPTIONS = ContainerOptions()

# The long option that gives each.
FIELDS: Mapping[str, str] = MappingProxyType(
    {
        "volume": "volumes",
        "env": "environment",
        "workdir": "workdir",
        "user": "user",
        "shm-size": "shm_size",
        "ulimit": "ulimits",
        "ipc": "ipc",
        "network": "network",
        "init": "init",
        "rm": "remove",
        "log-opt": "log_options",
        "packages": "packages",
        "engine-arguments": "engine_arguments",
    }
)

# jlr finds the container by its name and lives in it through its entrypoint.
_OURS = ("--name", "--entrypoint", "--cidfile")


def check_arguments(words: tuple[str, ...]) -> None:
    """Refuse words for the engine that could not be options of a new container.

    Raises:
        Usage: one of them is jlr's own, or none at all: the engine would take it for the image.
    """
    before = ""
    for word in words:
        option = word.partition("=")[0]
        if option in _OURS:
            raise Usage(
                f"`{option}` behind `--` is jlr's own",
                hint="the container's name is the argument behind HOST; its entrypoint only "
                "waits, so that the container stays",
            )
        if not word.startswith("-") and (not before.startswith("-") or "=" in before):
            raise Usage(
                f"`{word}` is neither an option of the engine nor the value of one",
                hint="what follows `--` goes to the engine: `-- --cap-add SYS_PTRACE`",
            )
        before = word
