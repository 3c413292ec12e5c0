"""Find a session's server again: at every reconnect the link proves what it forwards to.

On a host that many share, somebody else may sit on the port by now, or the container may have
been replaced by another one of the same name. So nothing is remembered but what identifies the
server, and everything else is asked again.
"""

from __future__ import annotations

import time
from dataclasses import dataclass

from jlremote.errors import JlrError
from jlremote.gpus import lost
from jlremote.gpus.snapshot_script import MINE
from jlremote.host.contract import Host
from jlremote.host.shell_text import command_line
from jlremote.jupyter import scripts
from jlremote.jupyter.discovery import Findings, endpoint, read_probe
from jlremote.jupyter.server import Endpoint, Place, Server
from jlremote.runtimes.contract import TYPED_LABEL, Container, Runtime
from jlremote.runtimes.engine.engine import Engine
from jlremote.runtimes.table import runtime_named

# A server that ends lets go of its port first.
LOOKS = 5
LOOK_PAUSE_SECONDS = 0.4


class ContainerGone(JlrError):
    """The container of a session does not exist, does not run, or is another one."""


class JupyterDead(JlrError):
    """The container is there, and the session's Jupyter server is not."""


class JupyterStopped(JlrError):
    """Somebody has stopped the session, perhaps from another laptop."""


class IdleStopped(JlrError):
    """The session's Jupyter server has ended by itself, as there was no work for so long."""


@dataclass(frozen=True)
class Survey:
    """All that one round trip tells about a session.

    Attributes:
        container: the container, `None` if there is none of that name.
        findings: what runs in it, `None` if nothing could be run in it.
        gpu_fault: what keeps it from its GPUs, where that was to be checked.
        called: the names of the containers that their owner calls so, where there is none.
    """

    container: Container | None
    findings: Findings | None
    gpu_fault: lost.Fault | None = None
    called: tuple[str, ...] = ()

    @property
    def servers(self) -> tuple[Server, ...]:
        """The Jupyter servers that run in it, the session's own first."""
        return self.findings.servers if self.findings else ()

    @property
    def server(self) -> Server | None:
        """The session's Jupyter server, or another one in its container; `None` for none."""
        return next(iter(self.servers), None)


def survey(
    host: Host,
    runtime: Runtime,
    name: str,
    *,
    typed: str | None = None,
    check_gpus: bool = False,
) -> Survey:
    """Ask the host all about `name`, in one round trip.

    Args:
        host: where.
        runtime: in what.
        name: the session's name.
        typed: what a person calls it, and perhaps another container if there is none of that name.
        check_gpus: whether a container that was given GPUs is asked for them.
    """
    inside = scripts.probe(runtime, name)
    if check_gpus and runtime.has_containers:
        inside += lost.CHECK
    steps = dict(runtime.survey(name, inside))
    if typed is not None and runtime.engine is not None:
        steps["called"] = _called(runtime.engine, typed)
    results = host.run(steps)
    container = runtime.read(name, results)
    if container is None and "called" in results:
        return Survey(None, None, called=tuple(results["called"].stdout.split()))
    probed = results["inside"]
    reachable = container is not None and container.running and probed.status == 0
    if not reachable:
        return Survey(container, None)
    restart = "" if runtime.engine is None else runtime.engine.shown("restart", name)
    fault = lost.read(probed.stdout, name, restart)
    return Survey(container, read_probe(probed.stdout), fault)


def _called(engine: Engine, typed: str) -> str:
    """Return the step that prints the person's containers of that short name.

    Nothing can have been run in a container that is not there; else the question is idle.
    """
    names = engine("ps", "--all", "--format={{.Names}}", f"--filter=label={TYPED_LABEL}={typed}")
    return f'[ "$status" = 0 ] || {command_line(names)} {MINE}'


def locate(host: Host, known: Endpoint) -> Endpoint:
    """Return where `known` is now; its address may have changed.

    In a container the server may be another one, which somebody has started there since, perhaps
    on another port.

    Raises:
        ContainerGone: the container is missing, stopped, restarted or replaced.
        JupyterDead: the server is not there any more.
        JupyterStopped: it was stopped.
        IdleStopped: it has ended for want of work.
    """
    runtime, place = runtime_named(known.place.runtime), known.place
    for _ in range(LOOKS):
        found = survey(host, runtime, place.name)
        container = same_container(place, found.container)
        server = _same_server(known.server, found.findings) or _another(container, found.findings)
        if server is not None:
            return endpoint(runtime, container, server)
        if not known.server.ours or found.findings is None or _ended(found.findings):
            break
        time.sleep(LOOK_PAUSE_SECONDS)  # it is about to end, and its shell will tell how
    which = f" (process {known.server.pid})"
    raise gone(place.name, found.findings if known.server.ours else None, which)


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


def _same_server(known: Server, findings: Findings | None) -> Server | None:
    running = findings.servers if findings else ()
    return next((server for server in running if server.identity == known.identity), None)


def _another(container: Container, findings: Findings | None) -> Server | None:
    """Return the server that is in a container now.

    On the host's network others may listen, too. And whether one without a token is open to all is
    for whoever starts the session to judge.
    """
    running = () if findings is None or container.on_host_network else findings.servers
    return next((server for server in running if server.token), None)


def _ended(findings: Findings) -> bool:
    return findings.exit_status is not None or bool(findings.ended)


def gone(name: str, findings: Findings | None, which: str = "") -> JlrError:
    """Return why a session has no server: it was stopped, it ended by itself, or nobody knows.

    Args:
        name: the session's name.
        findings: what its folder tells, `None` if the server was not launched by jlr.
        which: words that tell it from others.
    """
    again = f"start it again: `jlr start HOST {name}`"
    if findings and findings.ended == "idle":
        why = f"Jupyter in `{name}` has ended by itself, as nothing worked for so long (idle stop)"
        return IdleStopped(why, hint=again)
    if findings and (findings.ended == "stopped" or findings.exit_status == 0):
        why = f"somebody has stopped Jupyter in `{name}`, from its page or with `jlr stop`"
        return JupyterStopped(why, hint=again)
    return JupyterDead(
        f"the Jupyter server of `{name}`{which} is gone",
        hint=f"{again}; `jlr logs {name}` has its log",
    )
