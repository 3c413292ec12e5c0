"""The far end of a forward: the proof that it is still what it was, and the way there now.

On a host that many share, another user may have the port by now, or another container the name. So
only what identifies the place and the server is remembered, and everything else is asked again.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, replace

from jlremote.errors import JlrError, NotFound
from jlremote.jupyter.endpoint import Endpoint, Server
from jlremote.jupyter.survey import gone, refuse_halted, survey
from jlremote.place.host import addresses
from jlremote.place.host.addresses import LOCALHOST, Listener, Target
from jlremote.place.host.contract import Host, records
from jlremote.place.runtimes.place import Place, of_container
from jlremote.place.runtimes.runtime import Container, Runtime
from jlremote.untrusted import whole_number


@dataclass(frozen=True)
class Listeners:
    """The sockets that listen on a port."""

    user: int  # the id of the user who looked
    python: str  # an interpreter there, empty for none
    sockets: tuple[Listener, ...]  # the sockets, those first that a connection would meet first
    held: frozenset[str]  # inodes of the sockets that processes of the place hold


def probe(port: int) -> str:
    """Return the script that prints what listens on `port`."""
    return rf"""
listening=$({addresses.LISTENING} | grep ':{port:04X} [0-9A-F]*:0000 ')
set --
if [ -n "$listening" ]; then
  for process in /proc/[0-9]*; do
    [ "$process/ns/mnt" -ef /proc/self/ns/mnt ] && set -- "$@" "$process/fd"
  done
fi
printf 'user\037%s\036' "$(id -u)"
printf 'python\037%s\036' "$(command -v python3 || command -v python)"
printf 'listening\037%s\036' "$listening"
printf 'held\037%s\036' "$([ $# = 0 ] || ls -l "$@" 2>/dev/null | grep 'socket:')"
"""


def read_listening(output: str) -> Listeners:
    """Read the output of the script of `probe`; raise `JlrError` if it makes no sense."""
    try:
        facts = {name.strip(): value.strip() for name, value in records(output)}
        listeners = addresses.read_listeners(facts["listening"])
        # As the kernel does: the nearer address wins, and IPv4 over what also takes IPv4.
        ranked = sorted(listeners, key=lambda each: (each.everywhere, not each.is_ipv4))
        user, held = whole_number(facts["user"]), addresses.socket_inodes(facts["held"])
        return Listeners(user, facts["python"], tuple(ranked), held)
    except (KeyError, ValueError) as nonsense:
        raise JlrError(f"cannot read the list of what listens there: {nonsense!r}") from nonsense


# A server that ends lets go of its port first.
LOOKS = 5
LOOK_PAUSE_SECONDS = 0.4
# Users below are the system's: services, and the engine's proxy of published ports (UID_MIN of
# login.defs on Debian, Ubuntu, Fedora and RHEL).
FIRST_PERSON = 1000


def locate(host: Host, known: Endpoint) -> Endpoint:
    """Return an endpoint with its present way, once the far end is proved again.

    In a container the server may be another one, which the user has started there since. It raises
    what `same_container` and `survey.gone` tell; of a further port, that nothing listens there so
    far (state `closed`), or another user's or container's program (`taken`).
    """
    place, runtime = known.place, known.place.runtime
    if known.server is not None:
        return _locate_server(host, runtime, place, known.server)
    looking = runtime.on_machine(place.name, probe(known.port))
    results = host.run(runtime.survey(place.name, looking))
    container = same_container(host.name, place, runtime.read(place.name, results))
    looked = results["inside"]
    if looked.status != 0:
        raise JlrError(f"cannot inspect `{place.name}`: {looked.complaint}")
    listeners = read_listening(looked.stdout)
    return replace(known, target=port_target(known, runtime, container, listeners))


def _locate_server(host: Host, runtime: Runtime, place: Place, known: Server) -> Endpoint:
    wrong = None
    for _ in range(LOOKS):
        surveyed = survey(host, runtime, place.name)
        container = same_container(host.name, place, surveyed.container)
        server = next((one for one in surveyed.servers if one.identity == known.identity), None)
        is_shared = container.on_host_network and not container.in_job
        # On a network that users share, another one may be another user's.
        if server is None and not surveyed.launched_by and not is_shared:
            server = next((one for one in surveyed.servers if one.token), None)
        if server is not None:
            endpoint = server_endpoint(runtime, container, server)
            wrong = _wrong_on_node(host, runtime, endpoint)
            if wrong is None:
                return endpoint
        findings = surveyed.findings
        if not known.ours or findings is None or findings.exit_status is not None or findings.ended:
            break
        time.sleep(LOOK_PAUSE_SECONDS)  # it is about to end, and its shell will tell how
    findings = surveyed.findings if known.ours else None
    raise wrong or gone(host.name, container, findings, f" (process {known.pid})")


def _wrong_on_node(host: Host, runtime: Runtime, endpoint: Endpoint) -> JlrError | None:
    """Return what is wrong with a port of a node: any user can take it once the job has ended."""
    if endpoint.target is None or not endpoint.target.node:
        return None
    name, port = endpoint.place.name, endpoint.port
    looked = host.run({"look": runtime.on_machine(name, probe(port))})["look"]
    if looked.status != 0:
        return JlrError(f"cannot see what listens on the node of `{name}`: {looked.complaint}")
    on = read_listening(looked.stdout)
    if any(one.user != on.user for one in on.sockets):
        taken = f"another user's program listens on port {port} of the node of `{name}`"
        return JlrError(taken, state="taken")
    closed = JlrError(f"Jupyter of `{name}` no longer listens", state="closed")
    return None if on.sockets else closed


def same_container(host: str, place: Place, container: Container | None) -> Container:
    """Return the container if it still runs as when it was located, else raise `JlrError`."""
    container = refuse_halted(host, place.name, place.runtime, container)
    again = f"start the session again: `jlr start {host} {place.name}`"
    if container.id != place.container_id:  # behind one name may be several machines
        replaced = "the host was replaced by another machine"
        raise NotFound(replaced, hint=again, state="container-gone")
    # A job has a successor of the same name, with the session's local port.
    if container.started_at != place.started_at and not container.in_job:
        what = f"the container `{place.name}`" if place.runtime_name != "none" else "the host"
        raise JlrError(f"{what} was restarted", hint=again, state="restarted")
    return container


def server_endpoint(runtime: Runtime, container: Container, server: Server) -> Endpoint:
    """Return the endpoint of a server that was just seen, with the way to it.

    A relay through the engine's `exec` leads in where other containers may be on the network of the
    container, or the server listens on loopback only.
    """
    address, network = next(iter(container.alone_on.items()), ("", ""))
    if server.sock and not runtime.has_containers:
        way = runtime.relay_prefix(container.name)
        relay = (*way, server.python) if way else None
        target = Target("", server.port, relay, path=server.sock)
    elif server.secure:
        target = _relayed(runtime, container, server.loopback, server.port, server.python)
        target = replace(target, tls_pid=server.pid)
    elif container.node and not server.loopback_only:  # by `--reach tcp`
        target = Target(container.node, server.port, node=True)
    elif container.on_host_network:
        near = server.loopback if server.loopback in addresses.LOOPBACK else LOCALHOST
        target = Target(near, server.port)
    elif address and not server.loopback_only:
        target = Target(address, server.port, network=network)
    else:
        target = _relayed(runtime, container, server.loopback, server.port, server.python)
    place, until = of_container(runtime, container), container.until
    return Endpoint(place, server.port, server, server.python, target, until=until)


def port_target(known: Endpoint, runtime: Runtime, container: Container, on: Listeners) -> Target:
    """Return the way to the first of the listeners on a further port, or raise as `locate` does."""
    if not on.sockets:
        hint = "start the program; this address works from then on"
        nothing = f"nothing listens on port {known.port} of `{known.place.name}`"
        raise JlrError(nothing, hint=hint, state="closed")
    near = LOCALHOST if on.sockets[0].everywhere else on.sockets[0].address
    if container.addresses and LOCALHOST not in container.addresses:  # a network of its own
        bound = {socket.address for socket in on.sockets}
        anywhere = any(socket.everywhere for socket in on.sockets)
        reached = next((own for own in container.alone_on if anywhere or own in bound), None)
        if reached is not None:
            return Target(reached, known.port, network=container.alone_on[reached])
    else:
        _refuse_others(known, runtime, on)
        if container.addresses and not runtime.in_jobs:
            return Target(near, known.port)
    python = known.python or on.python
    if not python:
        raise JlrError(
            f"cannot reach port {known.port} of `{known.place.name}`: it is on the container's "
            "loopback or a shared network, and no Python is there for a relay",
            hint="let the program listen on 0.0.0.0, on a network that no other container is on",
        )
    return _relayed(runtime, container, near, known.port, python)


def _relayed(runtime: Runtime, container: Container, near: str, port: int, python: str) -> Target:
    # By its id: another container may have its name by the time that the relay starts.
    relay = (*runtime.relay_prefix(container.id), python)
    return Target(near, port, relay, node=runtime.in_jobs)


def _refuse_others(known: Endpoint, runtime: Runtime, on: Listeners) -> None:
    first = on.sockets[0]
    if first.inode in on.held if runtime.has_containers else first.user == on.user:
        return
    if known.on_host and first.user < FIRST_PERSON:
        return
    owner = "another container or program" if runtime.has_containers else "another user's program"
    why = f"{owner} listens on port {known.port}, and not a program of `{known.place.name}`"
    hint = "let your program listen on another port, and forward that one"
    raise JlrError(why, hint=hint, state="taken")
