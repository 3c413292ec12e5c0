"""The table of runtimes by name."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from typing import TYPE_CHECKING

from jlremote.errors import Usage
from jlremote.laptop.sessions import SessionRecord
from jlremote.place.runtimes.engine.kinds import DOCKER, ENGINES
from jlremote.place.runtimes.engine_containers import Containers
from jlremote.place.runtimes.processes import Apptainer, Bare
from jlremote.place.runtimes.runtime import Runtime

if TYPE_CHECKING:
    from jlremote.place.runtimes.on_node import OnNode

AUTO = "auto"
# Those whose sessions are processes of the host. The sessions of singularity lie with Apptainer's.
OF_PROCESSES: tuple[Bare | Apptainer, ...] = (Bare(), Apptainer())
_ON_HOSTS: Mapping[str, Runtime] = {
    runtime.name: runtime
    for runtime in (*map(Containers, ENGINES.values()), *OF_PROCESSES, Apptainer("singularity"))
}


@cache
def on_nodes() -> Mapping[str, OnNode]:
    """Return the runtimes of a cluster's nodes, by the name of what runs there."""
    # The scheduler is loaded here: most commands need none, and it would add a tenth to their
    # start.
    from jlremote.place.runtimes.on_node import SERVERS, OnNode

    insides = (
        Bare(servers_folder=SERVERS),
        Apptainer(servers_folder=SERVERS),
        Apptainer("singularity", servers_folder=SERVERS),
    )
    return {inside.name: OnNode(inside) for inside in insides}


@cache
def runtimes() -> Mapping[str, Runtime]:
    """Return all runtimes by name."""
    return {**_ON_HOSTS, **{runtime.name: runtime for runtime in on_nodes().values()}}


def runtime_of(record: SessionRecord) -> Runtime:
    """Return the runtime of a session, for the container of its record (`Usage`: there is none)."""
    return for_container(runtime_named(record.runtime), record.container_id)


def for_container(runtime: Runtime, container_id: str) -> Runtime:
    """Return the runtime for the container with this id, even if it was renamed."""
    if container_id and isinstance(runtime, Containers):
        return replace(runtime, container_id=container_id)
    return runtime


def runtime_named(name: str, *, sudo: bool = False) -> Runtime:
    """Return the runtime of a name, or the one behind `sudo` (`Usage`: there is none)."""
    wanted = DOCKER.name if name == AUTO else name  # until the host was asked
    wanted = f"sudo {wanted}" if sudo and not wanted.startswith("sudo ") else wanted
    chosen = _ON_HOSTS.get(wanted) or runtimes().get(wanted)
    if chosen is None:
        behind = " behind `sudo`" if sudo else ""
        hint = f"use one of: auto, {', '.join(runtimes())}"
        raise Usage(f"there is no runtime `{name}`{behind}", hint=hint)
    return chosen
