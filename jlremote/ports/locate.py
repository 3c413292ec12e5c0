"""The proof that the far end of a forward is still what it was, and where it is now.

On a host that many share, another user may sit on the port by now, or the container may have been
replaced by another one of the same name. So only what identifies the place and the server is
remembered, and everything else is asked again.
"""

from __future__ import annotations

import time
from dataclasses import replace

from jlremote.errors import JlrError
from jlremote.host.contract import Host
from jlremote.jupyter.discovery import Findings
from jlremote.jupyter.server import Server
from jlremote.jupyter.survey import ContainerGone, Survey, gone, survey
from jlremote.ports import listeners
from jlremote.ports.endpoint import Endpoint, Place
from jlremote.ports.routes import port_target, server_endpoint
from jlremote.runtimes.contract import Container, Runtime
from jlremote.runtimes.table import runtime_named

# A server that ends lets go of its port first.
LOOKS = 5
LOOK_PAUSE_SECONDS = 0.4


def locate(host: Host, known: Endpoint) -> Endpoint:
    """Return `known` with the way there as it is now.

    In a container the server may be another one, which the user has started there since, perhaps
    on another port.

    Raises:
        ContainerGone: the container is missing, stopped, restarted or replaced.
        JupyterDead: the server is not there any more.
        JupyterStopped: it was stopped.
        IdleStopped: it has ended for want of work.
        NothingListens: nothing listens on the further port so far.
        PortTaken: another user's program, or another container's, listens on it.
    """
    runtime = runtime_named(known.place.runtime)
    if known.server is None:
        return _locate_port(host, runtime, known)
    return _locate_server(host, runtime, known.place, known.server)


def _locate_server(host: Host, runtime: Runtime, place: Place, known: Server) -> Endpoint:
    for _ in range(LOOKS):
        found = survey(host, runtime, place.name)
        container = same_container(place, found.container)
        server = _same_server(known, found) or _another(container, found)
        if server is not None:
            return server_endpoint(runtime, container, server)
        if not known.ours or found.findings is None or _ended(found.findings):
            break
        time.sleep(LOOK_PAUSE_SECONDS)  # it is about to end, and its shell will tell how
    which = f" (process {known.pid})"
    raise gone(place.name, found.findings if known.ours else None, which)


def _locate_port(host: Host, runtime: Runtime, known: Endpoint) -> Endpoint:
    place = known.place
    results = host.run(runtime.survey(place.name, listeners.probe(known.port)))
    container = same_container(place, runtime.read(place.name, results))
    looked = results["inside"]
    if looked.status != 0:
        raise JlrError(f"cannot look into `{place.name}`: {looked.complaint}")
    found = listeners.read(looked.stdout)
    return replace(known, target=port_target(known, runtime, container, found))


def same_container(place: Place, container: Container | None) -> Container:
    """Return the container if it is the one that was at `place` before.

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


def _same_server(known: Server, found: Survey) -> Server | None:
    return next((one for one in found.servers if one.identity == known.identity), None)


def _another(container: Container, found: Survey) -> Server | None:
    """Return another server that runs in the container now.

    On the host's network others may listen, too. Whether a server without a token may be used is
    for `jlr start` to judge.
    """
    running = () if container.on_host_network else found.servers
    return next((server for server in running if server.token), None)


def _ended(findings: Findings) -> bool:
    return findings.exit_status is not None or bool(findings.ended)
