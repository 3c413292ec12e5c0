"""Find a session's server again: at every reconnect the link proves what it forwards to.

On a host that many share, somebody else may sit on the port by now, or the container may have
been replaced by another one of the same name. So nothing is remembered but what identifies the
server, and everything else is asked again.
"""

from __future__ import annotations

from dataclasses import dataclass

from jlremote.errors import JlrError
from jlremote.gpus import lost
from jlremote.host.shell import Host
from jlremote.jupyter import scripts
from jlremote.jupyter.discovery import Findings, endpoint, read_probe
from jlremote.jupyter.server import Endpoint, Place, Server
from jlremote.runtimes.contract import Container, Runtime
from jlremote.runtimes.table import runtime_named


class ContainerGone(JlrError):
    """The container of a session does not exist, does not run, or is another one."""


class JupyterDead(JlrError):
    """The container is there, and the session's Jupyter server is not."""


@dataclass(frozen=True)
class Survey:
    """All that one round trip tells about a session.

    Attributes:
        container: the container, `None` if there is none of that name.
        findings: what runs in it, `None` if nothing could be run in it.
        gpu_fault: what keeps it from its GPUs, where that was to be checked.
    """

    container: Container | None
    findings: Findings | None
    gpu_fault: lost.Fault | None = None


def survey(host: Host, runtime: Runtime, name: str, *, check_gpus: bool = False) -> Survey:
    """Ask the host all about `name`, in one round trip.

    Args:
        host: where.
        runtime: in what.
        name: the session's name.
        check_gpus: whether a container that was given GPUs is asked for them.
    """
    inside = scripts.probe(name, engine=runtime.engine is not None)
    if check_gpus and runtime.engine is not None:
        inside += lost.CHECK
    results = host.run(runtime.survey(name, inside))
    container = runtime.read(name, results)
    probed = results["inside"]
    reachable = container is not None and container.running and probed.status == 0
    if not reachable:
        return Survey(container, None)
    restart = "" if runtime.engine is None else runtime.engine.shown("restart", name)
    fault = lost.read(probed.stdout, name, restart)
    return Survey(container, read_probe(probed.stdout), fault)


def locate(host: Host, known: Endpoint) -> Endpoint:
    """Return where `known` is now; its address may have changed.

    Raises:
        ContainerGone: the container is missing, stopped, restarted or replaced.
        JupyterDead: the server is not there any more.
    """
    place = known.place
    runtime = runtime_named(place.runtime)
    found = survey(host, runtime, place.name)
    container = same_container(place, found.container)
    servers = found.findings.servers if found.findings else ()
    return endpoint(runtime, container, _same_server(place, known.server, servers))


def same_container(place: Place, container: Container | None) -> Container:
    """Return the container if it is the one that the place speaks of.

    Raises:
        ContainerGone: it is missing, stopped, restarted or replaced.
    """
    again = f"start the session again: `jlr start HOST {place.name}`"
    if container is None:
        raise ContainerGone(f"the container `{place.name}` is gone", hint=again)
    if not container.running:
        raise ContainerGone(f"the container `{place.name}` does not run", hint=again)
    if container.id != place.container_id:
        raise ContainerGone(
            f"the container `{place.name}` was replaced by another of that name", hint=again
        )
    if container.started_at != place.started_at:
        what = f"the container `{place.name}`" if place.runtime != "none" else "the host"
        raise ContainerGone(f"{what} was restarted", hint=again)
    return container


def _same_server(place: Place, known: Server, servers: tuple[Server, ...]) -> Server:
    for server in servers:
        if server.identity == known.identity:
            return server
    raise JupyterDead(
        f"the Jupyter server of `{place.name}` (process {known.pid}) is gone",
        hint=f"start it again: `jlr start HOST {place.name}`; `jlr logs {place.name}` has its log",
    )
