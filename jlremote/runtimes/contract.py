"""What a runtime must know; everything is text for `sh` or plain values, so it needs no host."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol

from jlremote.host.contract import Completed, Steps
from jlremote.runtimes.engine.engine import Engine
from jlremote.runtimes.options.container_options import NO_OPTIONS, ContainerOptions

SESSION_LABEL = "org.jlremote.session"
CREATOR_LABEL = "org.jlremote.created-by"
TYPED_LABEL = (
    "org.jlremote.typed"  # what its owner calls it, where a rule made another name of that
)
START_LABEL = "org.jlremote.start"  # which start made it, to be taken back by that one alone


@dataclass(frozen=True)
class Volume:
    """A folder of the host, or of a named volume, that a container sees.

    Attributes:
        source: absolute path on the host.
        target: absolute path in the container.
        name: the volume's name, `None` for a folder of the host.
    """

    source: str
    target: str
    name: str | None = None


@dataclass(frozen=True)
class Container:
    """A container (or, without an engine, the host itself) as it is right now.

    Attributes:
        id: the engine's full id; the host's boot id without an engine.
        name: the container's name, without the engine's leading slash.
        running: whether processes can be started in it.
        started_at: the engine's own time stamp of the last start; with `id` it tells whether
            this is still what was there before.
        image: the image as the engine names it.
        addresses: addresses at which the host reaches the container, best first.
        gpus: as they were asked for (`all`, `2`, `0,3`, …), `None` for none.
        labels: the engine's labels.
        workdir: the container's working folder.
        volumes: what it sees of the host's folders.
        options: what it was created with.
    """

    id: str
    name: str
    running: bool
    started_at: str
    image: str | None = None
    addresses: tuple[str, ...] = ()
    gpus: str | None = None
    labels: Mapping[str, str] = field(default_factory=dict)
    workdir: str = "/"
    volumes: tuple[Volume, ...] = ()
    options: ContainerOptions = NO_OPTIONS

    @property
    def on_host_network(self) -> bool:
        """Whether what listens in it listens on the host."""
        return self.addresses == ("127.0.0.1",)


@dataclass(frozen=True)
class ContainerSpec:
    """What a new container is to be.

    Attributes:
        name: its name.
        image: the image as the engine takes it.
        options: what a person asked for.
        gpus: as the engine's `--gpus` takes them.
        script: what it runs; then it waits, or begins a job's command.
        own_entrypoint: whether the image's entrypoint runs; else nothing of the image does.
    """

    name: str
    image: str
    options: ContainerOptions = NO_OPTIONS
    gpus: str | None = None
    script: str = ""
    own_entrypoint: bool = True


@dataclass(frozen=True)
class Attachment:
    """How a command runs whose stdin and stdout are the caller's.

    Attributes:
        terminal: columns and rows of the terminal that they are, `None` if they are none.
        user: `USER[:GROUP]` in the container, its own by default.
        workdir: the folder to begin in, the container's own by default.
        detach_keys: what leaves it alone there, the engine's default by default.
    """

    terminal: os.terminal_size | None = None
    user: str | None = None
    workdir: str | None = None
    detach_keys: str | None = None


class Runtime(Protocol):
    """Where a server runs. Methods return shell text or read what it printed; none has effects."""

    @property
    def name(self) -> str:
        """What `--runtime` calls it."""
        ...

    @property
    def engine(self) -> Engine | None:
        """Whose containers they are, `None` for no containers at all."""
        ...

    @property
    def has_containers(self) -> bool:
        """Whether a session has a container, with files, users and processes of its own."""
        ...

    @property
    def servers_folder(self) -> str:
        """The folder that holds a folder for each session's server, as shell text."""
        ...

    def place(self, name: str, host: str) -> str:
        """Return where the session `name` runs, for a message: a container, or the host."""
        ...

    @property
    def bind_address(self) -> str:
        """What Jupyter is told to listen on."""
        ...

    def check_name(self, name: str) -> None:
        """Refuse a name that the engine would not take.

        Raises:
            Usage: with the rule that the name breaks.
        """
        ...

    def survey(self, name: str, inside: str) -> Steps:
        """Return the steps that tell all about `name`, `inside` being run where a server would."""
        ...

    def read(self, name: str, results: Mapping[str, Completed]) -> Container | None:
        """Return what the survey's steps found, `None` for no such container.

        Raises:
            JlrError: the engine is missing, not permitted or not running.
        """
        ...

    def inside(self, name: str, script: str) -> str:
        """Return the shell command that runs `script` where the server runs, and waits for it."""
        ...

    def detached(self, name: str, script: str) -> str:
        """Return the shell command that runs `script` there and does not wait for it."""
        ...

    def launched(self, name: str, script: str, waiting: str) -> str:
        """Return the shell text that runs `script` in the background and `waiting` until it ends.

        `waiting` may begin before `script` does.
        """
        ...

    def relay_prefix(self, name: str) -> tuple[str, ...]:
        """Return the argv in front of a program that runs there with stdin and stdout attached."""
        ...

    def attached(
        self,
        name: str,
        argv: tuple[str, ...],
        how: Attachment,
        environment: Mapping[str, str],
    ) -> tuple[str, ...]:
        """Return the command that runs `argv` there with the caller's stdin and stdout.

        Raises:
            Usage: it cannot be run that way.
        """
        ...
