"""Requests: the arguments of a command, as `cli` passes them on; and one start in progress."""

from __future__ import annotations

import secrets
import shlex
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from jlremote.errors import Usage
from jlremote.laptop import sessions
from jlremote.laptop.sessions import PortRecord, SessionRecord
from jlremote.place.clusters.scheduler import Ranks, Resources
from jlremote.place.runtimes.container_options import (
    FIELDS,
    NO_OPTIONS,
    ContainerOptions,
    check_arguments,
)

if TYPE_CHECKING:
    from jlremote.hosts.context import Context
    from jlremote.link.client.link import Link
    from jlremote.place.runtimes.engine.kinds import Engine
    from jlremote.place.runtimes.runtime import Container, Runtime


@dataclass(frozen=True)
class EngineChoice:
    """The engine of a command that names no session: its name or `auto`, perhaps with `sudo`."""

    runtime: str = "auto"
    sudo: bool = False
    image_folder: str | None = None  # of the host, for images that are files; `None`: jlr's own


ANY_ENGINE = EngineChoice()


@dataclass(frozen=True)
class Scheduled:
    """What a scheduler is asked for, and what its job loads before the command."""

    resources: Resources
    modules: tuple[str, ...] = ()
    ranks: Ranks | None = None  # how its ranks are started, `None` for a command that runs once
    pull_on: str = "login"  # where its image is pulled: on the `login` node or by the `job`
    by_tcp: bool = False  # whether Jupyter listens on a TCP port of its node, not on a socket


@dataclass(frozen=True)
class StartRequest:
    """`jlr start HOST [CONTAINER]`."""

    host: str  # what `ssh HOST` takes
    container: str | None = None  # the name of container and session; `None`: the story chooses
    name_rule: str = "{name}"  # the naming template of a new container, of `{name}` and `{user}`
    runtime: str = "auto"  # `auto`, an engine (`podman`), or `none`
    sudo: bool = False  # whether the engine is called with `sudo`
    image: str | None = None  # the image of a new container
    image_folder: str | None = None  # the host's folder of images that are files
    options: ContainerOptions = NO_OPTIONS  # the other options of a new container
    workspace: str | None = None  # the host's folder for `/workspace`; `.`: named as this one
    gpus: str | None = None  # as the engine's `--gpus`, or `none`, `auto`; see `gpus.choice`
    share_gpus: bool = False  # whether GPUs that others use may be taken
    wait: float | None = None  # how many seconds to wait for GPUs, `None` for not at all
    local_port: int | None = None  # the exact local TCP port, `None` for any
    ports: tuple[PortRecord, ...] = ()  # further TCP ports to forward
    python: str | None = None  # of runtime `none`: an executable or a virtual environment's folder
    conda_env: str | None = None  # with runtime `none`: a conda environment's name or folder
    idle_stop: int | None = None  # seconds without work after which Jupyter ends; 0 for never
    record: bool = True  # whether what cells print is recorded on the host
    allow_open: bool = False  # whether a server without token and password may be forwarded
    as_shared: bool = False  # whether another user's session may be joined
    server: int | None = None  # the port there of the Jupyter server to take, where several run
    scheduled: Scheduled | None = None  # how a cluster's scheduler runs it, `None` for no wish
    notify: bool | None = None  # whether the desktop tells what happens; `None` for as before
    cancel_on_interrupt: bool = False  # whether Ctrl-C cancels a job that is waited for


@dataclass(frozen=True)
class RunRequest:
    """`jlr run HOST -- COMMAND`."""

    # where it runs; its `container` is the job's name. Of its options, environment, folder and
    # user apply to any job, the others to a new container
    wanted: StartRequest
    command: tuple[str, ...]
    inside: str | None = None  # the name of the session or container of the host to run it in
    scheduled: Scheduled | None = None  # how a scheduler runs it, `None` for without one
    remove: bool = False  # whether it is deleted once its output and exit code were read
    interactive: bool = False  # whether it gets stdin
    terminal: bool = False  # whether it gets a terminal, and stdin
    detach_keys: str | None = None  # the keys that leave the terminal, as the engine takes them
    detach: bool = False  # whether it begins without anything here that reads its output


@dataclass(frozen=True)
class StopRequest:
    """`jlr stop [SESSION]`, or `jlr rm`, which has `remove`; with `force` also what works ends."""

    container: bool = False
    remove: bool = False
    force: bool = False
    yes: bool = False  # whether the person has said yes to what is lost
    again: bool = False  # whether it is started again at once: `jlr restart`

    @property
    def destroys(self) -> bool:
        """Whether more than Jupyter with its idle kernels may end or be deleted."""
        return self.container or self.remove or self.force

    @property
    def ends_container(self) -> bool:
        return self.container or self.remove

    @property
    def command(self) -> str:
        """The command as it is typed, without `jlr`, names and `--yes`."""
        verb = "restart" if self.again else "rm" if self.remove else "stop"
        container = " --container" if self.container and not self.remove else ""
        return f"{verb}{container}{' --force' if self.force else ''}"


@dataclass(frozen=True)
class LogRequest:
    """`jlr logs [SESSION]`."""

    follow: bool = False
    tail: int | None = None  # the last lines, `None` for all
    since: int | None = None  # leaves out what is older, as of `times.since`
    container: bool = False  # the log of the container's own program, and not of Jupyter


def container_options(settled: Mapping[str, Any]) -> ContainerOptions:
    """Return the options of a new container, out of those by their long names (`Usage`)."""
    check_arguments(settled.get("engine-arguments", ()))
    workdir = settled.get("workdir") or "/"
    if settled.get("image") and settled.get("runtime") != "none" and workdir[:1] != "/":
        raise Usage(f"invalid `--workdir {workdir}`", hint="write a folder of the container: `/…`")
    return ContainerOptions(**{FIELDS[name]: settled[name] for name in FIELDS if name in settled})


def stop_command(host: str, name: str, request: StopRequest) -> str:
    """Return the whole command that stops a session or job with these options."""
    verb, *options = request.command.split()
    return " ".join(("jlr", verb, shlex.quote(f"{host}/{name}"), *options))


@dataclass(frozen=True)
class StartContext:
    """One `jlr start` or `jlr run` in progress."""

    host: Link
    runtime: Runtime
    name: str  # the session's
    request: StartRequest
    context: Context
    undo: ExitStack  # the steps to take back if a later one fails
    environment: str = ""  # shell text that runs before a server without a container
    # The random mark of this start, by which what it made is found on the host.
    mark: str = field(default_factory=lambda: secrets.token_hex(6))
    owner: str | None = None  # the other user who owns the session, joined on request
    user: str = ""  # the person's name on the host, where it was asked for
    loopback: bool = False  # whether the server listens there only, as the network is the host's
    sockets: bool = True  # whether the SSH server connects to unix sockets, as far as is known

    @property
    def engine(self) -> Engine:
        return self.runtime.required_engine

    @property
    def container(self) -> str:
        """The session's container as the engine is told of it: its id where that is known."""
        return self.runtime.reference(self.name)

    def with_engine(self, engine: Engine) -> StartContext:
        from jlremote.place.runtimes.engine_containers import Containers

        return self if engine == self.engine else replace(self, runtime=Containers(engine))

    def note(self, text: str) -> None:
        self.context.progress.note(text)

    def way_to_delete(self, container: Container, end: str) -> str:
        """Return the end of a hint: how to delete a container, empty for another user's."""
        if self.owner is not None:
            return ""
        command = stop_command(self.request.host, container.name, StopRequest(remove=True))
        return f"; `{command}` deletes it with all its files, {end}"

    @property
    def known(self) -> SessionRecord | None:
        return sessions.find(self.request.host, self.name)

    @property
    def server(self) -> int | None:
        """The port of the server that was chosen, by this request or an earlier one."""
        return self.request.server or (self.known.server if self.known else None)

    @property
    def open_allowed(self) -> bool:
        """Whether the server may have no token, by this request or an earlier one."""
        return self.request.allow_open or (self.known is not None and self.known.open_allowed)
