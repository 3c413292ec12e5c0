"""The options of a new container, named as the engines name them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from jlremote.errors import Usage


@dataclass(frozen=True)
class ContainerOptions:
    """The requested options; `None` and `()` leave the choice to the image and the engine.

    An item of `ulimits` or `log_options` without a value (`memlock=`) takes away that of a profile.
    """

    volumes: tuple[str, ...] = ()  # `SOURCE:TARGET[:OPTIONS]`
    environment: tuple[str, ...] = ()  # `NAME=VALUE`, or `NAME`
    workdir: str | None = None  # working folder, the server's root
    user: str | None = None  # `USER[:GROUP]`
    shm_size: str | None = None  # size of `/dev/shm`, e.g. `1g`
    ulimits: tuple[str, ...] = ()  # `NAME=SOFT[:HARD]`
    ipc: str | None = None  # shared memory, e.g. `host`
    network: str | None = None  # e.g. `host`
    init: bool | None = None  # whether a small init is process 1, by default yes
    remove: bool | None = None  # whether the container is removed when it stops
    log_options: tuple[str, ...] = ()  # `NAME=VALUE` for the log of the container's main process
    packages: tuple[str, ...] = ()  # Python packages to install in it, as pip takes them
    engine_arguments: tuple[str, ...] = ()  # further words for the engine's command line

    @property
    def on_host_network(self) -> bool:
        """Whether the network is the host's, where all users reach a listening port."""
        words = " ".join(self.engine_arguments)
        return self.network == "host" or bool(re.search(r"--net(work)?[= ]host\b", words))

    @property
    def keeps_no_log(self) -> bool:
        """Whether the engine keeps nothing of what the container prints."""
        return bool(re.search(r"--log-driver[= ]none\b", " ".join(self.engine_arguments)))


NO_OPTIONS = ContainerOptions()

# The fields by their long options.
FIELDS: Mapping[str, str] = {
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

# jlr sets these itself: it finds the container by its name and sets its entrypoint.
_OURS = ("--name", "--entrypoint", "--cidfile")


def check_arguments(words: tuple[str, ...]) -> None:
    """Refuse words for the engine's command line that jlr sets or that are no options (`Usage`)."""
    before = ""
    for word in words:
        option = word.partition("=")[0]
        if option in _OURS:
            raise Usage(
                f"`{option}` cannot be given after `--`: jlr sets it itself",
                hint="`jlr start HOST NAME` names the container; its entrypoint only waits, so "
                "that the container stays",
            )
        if not word.startswith("-") and (not before.startswith("-") or "=" in before):
            raise Usage(
                f"unexpected argument `{word}`",
                hint="options of the engine follow `--`, as in `-- --cap-add SYS_PTRACE`; a volume "
                "is `-v SOURCE:TARGET`",
            )
        before = word
