"""The way from the host to a server, or to a further port that is the session's."""

from __future__ import annotations

from jlremote.errors import JlrError
from jlremote.host.target import Target
from jlremote.host.tcp_table import Listener
from jlremote.jupyter.server import Server
from jlremote.ports.endpoint import LOOPBACK, Endpoint, Place
from jlremote.ports.listeners import Listeners
from jlremote.runtimes.contract import Container, Runtime

LOCALHOST = LOOPBACK[0]


class NothingListens(JlrError):
    """Nothing listens on the port yet, or no more."""


class PortTaken(JlrError):
    """What listens on the port is not the session's."""


def place_of(runtime: Runtime, container: Container) -> Place:
    """Return the place of the session that is in `container` now."""
    return Place(runtime.name, container.name, container.id, container.started_at)


def server_endpoint(runtime: Runtime, container: Container, server: Server) -> Endpoint:
    """Return the endpoint of a server that was just seen, with the way to it.

    A container's own address needs no published port: an existing container works as it is, and
    nothing opens on the host. Without such an address, or where the server listens on the
    container's loopback only, a relay through the engine's `exec` leads in.
    """
    address = next(iter(container.addresses), None)
    if container.on_host_network:
        target = Target(server.loopback, server.port)
    elif address and not server.loopback_only:
        target = Target(address, server.port)
    else:
        target = _relayed(runtime, container, server.loopback, server.port, server.python)
    return Endpoint(place_of(runtime, container), server.port, server, server.python, target)


def port_target(known: Endpoint, runtime: Runtime, container: Container, on: Listeners) -> Target:
    """Return the way to the first of the listeners on a further port.

    Raises:
        NothingListens: there is none.
        PortTaken: another user's program, or another container's, listens there.
        JlrError: a relay is needed, and no Python is there to run it.
    """
    if not on.found:
        raise NothingListens(
            f"nothing listens on port {known.port} of `{known.place.name}`",
            hint="start the program; this address works from then on",
        )
    near = LOCALHOST if on.found[0].everywhere else on.found[0].address
    own_network = bool(container.addresses) and LOCALHOST not in container.addresses
    if own_network:
        reached = _from_the_host(container, on.found)
        if reached is not None:
            return Target(reached, known.port)
    else:
        _refuse_others(known, runtime, on)
        if container.addresses:
            return Target(near, known.port)
    return _relayed(runtime, container, near, known.port, _python(known, on))


def _relayed(runtime: Runtime, container: Container, near: str, port: int, python: str) -> Target:
    # By its id: another container may have its name by the time that the relay starts.
    return Target(near, port, (*runtime.relay_prefix(container.id), python))


def _from_the_host(container: Container, found: tuple[Listener, ...]) -> str | None:
    """Return the container's address at which the host reaches one of the listeners."""
    bound = {listener.address for listener in found}
    anywhere = any(listener.everywhere for listener in found)
    return next((a for a in container.addresses if anywhere or a in bound), None)


def _refuse_others(known: Endpoint, runtime: Runtime, on: Listeners) -> None:
    """Refuse what others may have put there, on a network that they share."""
    first = on.found[0]
    if first.inode in on.held if runtime.has_containers else first.user == on.user:
        return
    owner = "another container or program" if runtime.has_containers else "another user's program"
    raise PortTaken(
        f"{owner} listens on port {known.port} there, not one of `{known.place.name}`",
        hint="`jlr forward` another port, and let your program listen there; this one gets nothing",
    )


def _python(known: Endpoint, on: Listeners) -> str:
    python = known.python or on.python
    if python:
        return python
    raise JlrError(
        f"cannot reach port {known.port} of `{known.place.name}`: it is on the container's "
        "loopback, and no Python is there for a relay",
        hint="let the program listen on 0.0.0.0, the container's own network",
    )
