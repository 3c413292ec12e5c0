"""The contract of a runtime; all is text for `sh` or plain values, so it needs no host."""

from __future__ import annotations

import os
import re
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field

from jlremote.errors import Usage
from jlremote.place.host.contract import USER_LABEL, Completed, Steps
from jlremote.place.host.shell_text import command_line
from jlremote.place.runtimes.container_options import NO_OPTIONS, ContainerOptions
from jlremote.place.runtimes.engine.kinds import Argv, Engine
from jlremote.text import one_line

Environment = Mapping[str, str]

SESSION_LABEL = "org.jlremote.session"
CREATOR_LABEL = "org.jlremote.created-by"
TYPED_LABEL = "org.jlremote.typed"  # the typed name, if the naming template made another of it
JOB_LABEL = "org.jlremote.job"
START_LABEL = "org.jlremote.start"  # the start that made it, and alone may take it back
# The step that names the user on the host.
WHO = {"user": "id -un || id -u"}
KILLED = 128 + 9  # sh: and the signal's number
_NAME = re.compile(r"[a-zA-Z0-9][a-zA-Z0-9_.-]*")


@dataclass(frozen=True)
class Volume:
    """A folder of the host, or a named volume, in a container."""

    source: str  # absolute path on the host
    target: str  # absolute path in the container
    name: str | None = None  # the volume's name, `None` for a folder of the host


@dataclass(frozen=True)
class Container:
    """A container as it is right now; the runtime `none` describes the host as one."""

    id: str  # the engine's full id; the machine's name for the host
    name: str  # without the engine's leading slash; a session's stays after `docker rename`
    running: bool  # whether processes can be started in it
    # The engine's time stamp, or the host's boot id; with `id` it identifies what was located.
    started_at: str
    image: str | None = None  # the image, as the engine names it
    addresses: tuple[str, ...] = ()  # addresses at which the host reaches the container, best first
    # Those of them that no other container can take, each with the id of its network.
    alone_on: Mapping[str, str] = field(default_factory=dict)
    gpus: str | None = None  # for people (`all`, `2`, `GPU-7fdaf0a5`, …), `None` for none
    engine_gpus: str | None = None  # the same as the engine's `--gpus` (`2`, `device=GPU-…`, …)
    labels: Mapping[str, str] = field(default_factory=dict)
    workdir: str = "/"
    renamed: str = ""  # its name by now, if that is not `name`
    paused: bool = False  # its processes stand still until the engine lets them go on
    halt: str = ""  # why it does not run, in words; empty while it runs
    restarting: bool = False  # whether its engine is about to start it again
    restarts: int = 0  # how often its engine has started it again by itself
    out_of_memory: str = ""  # that something in it was killed for its memory, in words
    in_job: bool = False  # whether it is a job of a cluster's scheduler
    job: str | None = None  # that job's id
    node: str = ""  # that job's node, once it runs
    waits: bool = False  # whether that job waits in the queue
    starts: bool = False  # whether that job runs, and its server does not listen yet
    until: float | None = None  # when its time limit ends it, in seconds since the epoch
    volumes: tuple[Volume, ...] = ()
    options: ContainerOptions = NO_OPTIONS  # at its creation

    @property
    def on_host_network(self) -> bool:
        return self.addresses == ("127.0.0.1",)

    @property
    def called(self) -> str:
        """The name that the engine has for it."""
        return self.renamed or self.name

    @property
    def stands(self) -> str:
        """`does not run`, with the reason if it is known."""
        return f"does not run: {self.halt}" if self.halt else "does not run"

    @property
    def is_session(self) -> bool:
        """Whether jlr made it: a label that it has from its image does not name it."""
        return self.labels.get(SESSION_LABEL) == self.name

    @property
    def labelled_user(self) -> str:
        """The user of the host in the label, if jlr made it; empty for no user."""
        made = self.is_session or self.labels.get(JOB_LABEL) == self.name
        return one_line(self.labels.get(USER_LABEL, "")) if made else ""

    def owner_beside(self, user: str) -> str | None:
        """Return the other user who owns it, `None` if it is `user`'s own or of no user."""
        return self.labelled_user if self.labelled_user not in ("", user) else None


@dataclass(frozen=True)
class ContainerSpec:
    """A container to be created."""

    name: str
    image: str  # the image, as the engine takes it
    options: ContainerOptions = NO_OPTIONS
    gpus: str | None = None  # the value of the engine's `--gpus`
    script: str = ""  # what it runs before it waits, or before a job's command
    own_entrypoint: bool = True  # whether the image's entrypoint runs
    interactive: bool = False  # whether a job's command gets stdin
    terminal: bool = False  # whether a job's command has a terminal


@dataclass(frozen=True)
class Attachment:
    """How to run a command with the caller's stdin and stdout."""

    terminal: os.terminal_size | None = None  # size of the caller's terminal, `None` without one
    user: str | None = None  # `USER[:GROUP]` in the container, by default the container's
    workdir: str | None = None  # the folder to begin in, by default the container's
    detach_keys: str | None = None  # the keys that detach from it, by default the engine's
    mark: str = ""  # of a job of `jlr run`, by which `Runtime.sweep` finds it


class Runtime(ABC):
    """A way to run servers. Methods return shell text or read its output; none has effects.

    What stands here holds where a session is processes of the host.
    """

    engine: Engine | None = None  # the engine, for commands of its own; `None` without containers
    in_jobs: bool = False  # whether a session is a job, on another machine than its folder
    # Where Jupyter listens if it can have no socket. Other users share the loopback; the token
    # keeps them out.
    bind_address: str = "127.0.0.1"
    servers_folder: str  # shell text: the folder that holds a folder for each session's server

    @property
    @abstractmethod
    def name(self) -> str:
        """The name for `--runtime`."""

    @property
    def program(self) -> str:
        """The name of the program on the host that runs its images; empty without images."""
        return ""

    @property
    def has_containers(self) -> bool:
        """Whether a session has a container, with files, users and processes of its own."""
        return self.engine is not None

    @property
    def has_images(self) -> bool:
        """Whether a session is made from an image, and has its programs and packages."""
        return False

    @property
    def enters_image(self) -> bool:
        """Whether a session is processes of a machine with the files of an image."""
        return self.has_images and not self.has_containers

    @property
    def on_host(self) -> bool:
        """Whether a session's programs are those of the host itself."""
        return not (self.has_images or self.in_jobs)

    @property
    def gpus_by_cdi(self) -> bool:
        """Whether a new container's GPUs are named as the host's CDI files do, maybe by index."""
        return self.engine is not None and self.engine.kind.gpus == "devices"

    @property
    def required_engine(self) -> Engine:
        """The engine of a runtime that has containers (`Usage`: it has none)."""
        if self.engine is None:
            raise Usage("the runtime has no containers", hint="`--runtime docker`, or `podman`")
        return self.engine

    def shown(self, *words: str) -> str:
        """Return a command of its engine as a person types it, empty without one."""
        return "" if self.engine is None else self.engine.shown(*words)

    def place(self, name: str, host: str) -> str:
        """Return the place of the session `name` for a message: its container, or the host."""
        return f"`{host}`"

    def check_name(self, name: str) -> None:
        """Check that a session's name is fit for a folder, a URL and an engine (`Usage`)."""
        least = 2 if self.has_containers else 1  # moby/names: RestrictedNamePattern
        if not _NAME.fullmatch(name) or not least <= len(name) <= 128:
            raise Usage(
                f"invalid name `{one_line(name)}`",
                hint=f"use {least} to 128 letters, digits, `_`, `.` and `-`, the first a letter or "
                "digit",
            )

    def reference(self, name: str) -> str:
        """Return what means the container of a session to its engine."""
        return name

    @abstractmethod
    def describe(self, name: str) -> Steps:
        """Return the step that describes `name`; `read` reads its output."""

    def survey(self, name: str, inside: str, typed: str | None = None) -> Steps:
        """Return the steps that describe `name`, and run the script `inside` where it runs.

        With containers they also tell the `user`, and which ones are labelled with a `typed` name.
        """
        return {**self.describe(name), "inside": self.inside(name, inside)}

    @abstractmethod
    def read(self, name: str, results: Mapping[str, Completed]) -> Container | None:
        """Return the container that the survey found (`JlrError`: the engine does not work)."""

    def inside(self, name: str, script: str) -> str:
        """Return the shell command that runs `script` where `name` runs, and waits for it.

        For a job of a scheduler that is where its folder is; see `on_machine`.
        """
        return command_line(("sh", "-c", script))

    def on_machine(self, name: str, script: str) -> str:
        """Return the script for `inside` that runs `script` on the machine of its processes."""
        return script

    def owns(self, container: Container) -> str:
        """Return shell text that checks whether `$process`, a folder of `/proc`, is the session's.

        It is for `on_machine`; `$own` is the control group of the shell that asks.
        """
        return '[ -O "$process" ]'

    def in_image(self, name: str, script: str) -> str:
        """Return the command that runs `script` with the image's or the host's programs."""
        return self.inside(name, script)

    @abstractmethod
    def detached(self, name: str, script: str) -> str:
        """Return the shell command that runs `script` there and does not wait."""

    def launched(self, name: str, script: str, waiting: str) -> str:
        """Return shell text that runs `script` in the background, and `waiting` until it ends."""
        return f"{self.detached(name, script)}\n{self.inside(name, waiting)}"

    def as_launched(self, script: str) -> str:
        """Return `script` with the variables that a server has which the container launched."""
        return script

    def relay_prefix(self, name: str) -> Argv:
        """Return the argv before a program with our stdin; empty where a forward reaches."""
        return ()

    def beside(self, name: str, script: str) -> str:
        """Return the command that runs `script` with our stdin beside the session's server."""
        # Only the end of stdin reaches a process in a container.
        return command_line((*self.relay_prefix(name), "sh", "-c", script))

    @abstractmethod
    def attached(self, name: str, argv: Argv, how: Attachment, environment: Environment) -> Argv:
        """Return the command that runs `argv` with our stdin and stdout (`Usage`: no option)."""

    def sweep(self, name: str, mark: str, user: str | None = None) -> Argv:
        """Return the command that ends what has a mark there (see `sweep_argv`), or nothing."""
        return ()
