"""Find a further port of a session: the same container, and nobody else on the port."""

from __future__ import annotations

from dataclasses import replace

from jlremote.errors import JlrError
from jlremote.host.contract import Host
from jlremote.host.target import Target
from jlremote.jupyter.locate import same_container
from jlremote.ports import listeners
from jlremote.ports.endpoint import PortEndpoint
from jlremote.ports.listeners import Listener, Listeners
from jlremote.runtimes.contract import Container, Runtime
from jlremote.runtimes.table import runtime_named

LOCALHOST = "127.0.0.1"


class NothingListens(JlrError):
    """Nothing listens on the port yet, or no more."""


class PortTaken(JlrError):
    """What listens on the port is not the session's."""


def locate_port(host: Host, known: PortEndpoint) -> PortEndpoint:
    """Return `known` with the way there as it is now.

    Raises:
        ContainerGone: the container is missing, stopped, restarted or replaced.
        NothingListens: there is nothing to lead to, so far.
        PortTaken: another user's program, or another container's, listens there.
    """
    place = known.place
    runtime = runtime_named(place.runtime)
    results = host.run(runtime.survey(place.name, listeners.probe(known.port)))
    container = same_container(place, runtime.read(place.name, results))
    looked = results["inside"]
    if looked.status != 0:
        raise JlrError(f"nobody can look into `{place.name}`: {looked.complaint}")
    found = listeners.read(looked.stdout)
    if not found.found:
        raise NothingListens(
            f"nothing listens on port {known.port} of `{place.name}`",
            hint="start it there; this address works from then on",
        )
    return replace(known, target=_target(known, runtime, container, found))


def _target(
    known: PortEndpoint, runtime: Runtime, container: Container, found: Listeners
) -> Target:
    own_network = bool(container.addresses) and LOCALHOST not in container.addresses
    if own_network:
        reached = _from_the_host(container, found.found)
        if reached is not None:
            return Target(reached, known.port)
    else:
        _refuse_others(known, runtime, found)
        if container.addresses:
            return Target(_near(found.found[0]), known.port)
    prefix = runtime.relay_prefix(container.id)
    return Target(_near(found.found[0]), known.port, (*prefix, _python(known, found)))


def _from_the_host(container: Container, found: tuple[Listener, ...]) -> str | None:
    """Return the container's address at which the host reaches one of the listeners."""
    bound = {listener.address for listener in found}
    anywhere = any(listener.everywhere for listener in found)
    return next((a for a in container.addresses if anywhere or a in bound), None)


def _refuse_others(known: PortEndpoint, runtime: Runtime, found: Listeners) -> None:
    """Refuse what others may have put there, on a network that they share."""
    first = found.found[0]
    if first.held if runtime.has_containers else first.user == found.user:
        return
    owner = "another container or program" if runtime.has_containers else "another user's program"
    raise PortTaken(
        f"{owner} listens on port {known.port} there, not one of `{known.place.name}`",
        hint="nothing is sent to it; let yours listen on another port, and forward that one",
    )


def _near(listener: Listener) -> str:
    """Return the address at which a listener is reached from beside it."""
    return LOCALHOST if listener.everywhere else listener.address


def _python(known: PortEndpoint, found: Listeners) -> str:
    python = known.python or found.python
    if python:
        return python
    raise JlrError(
        f"port {known.port} is open inside `{known.place.name}` only, and no Python is there to "
        "reach it with",
        hint="let the program listen on 0.0.0.0: that is the container's own network",
    )
