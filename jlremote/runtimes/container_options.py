"""What a person may ask of a new container, in the engine's own words."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType


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
    engine_arguments: tuple[str, ...] = ()


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
        "engine-arguments": "engine_arguments",
    }
)
