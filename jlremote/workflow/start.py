"""`jlr start`: the main job."""

from __future__ import annotations

from dataclasses import replace

from jlremote.jupyter.address import address
from jlremote.jupyter.discovery import endpoint
from jlremote.jupyter.locate import Survey, survey
from jlremote.link.client import Link
from jlremote.link.status import ForwardStatus
from jlremote.ports.endpoint import PortEndpoint
from jlremote.runtimes.contract import Container, Runtime
from jlremote.storage import sessions
from jlremote.storage.sessions import PortRecord, SessionRecord
from jlremote.workflow import further_ports, gpu_taking, launching, naming, placing
from jlremote.workflow.answering import of_access, refuse_open, wait_for_answer
from jlremote.workflow.context import Context
from jlremote.workflow.engines import surveyed
from jlremote.workflow.forwarding import forwarded
from jlremote.workflow.gpu_taking import Taken
from jlremote.workflow.links import connect, link_on, link_to
from jlremote.workflow.report import PortReport, SessionReport, utc
from jlremote.workflow.requests import StartRequest
from jlremote.workflow.undertaking import Undertaking
from jlremote.workflow.undoing import undone_on_failure
from jlremote.workflow.ways import known_way


def start(request: StartRequest, context: Context) -> SessionReport:
    """Start or reuse a container, a Jupyter server in it and a forward to it.

    What this call made is undone if a later step fails; what was there before is left alone.

    Raises:
        JlrError: one of the steps failed; the message says which and why.
    """
    known, runtime = naming.session_of(request)
    sessions.check_writable()
    context = known_way(request.host, context)
    host = link_to(request.host, context, without=known)
    with undone_on_failure() as undo:
        connect(host, context)
        runtime, name, found = _look(request, runtime, known, host, context)
        this = Undertaking(host, runtime, name, request, context, undo)
        _explain_lost_gpus(this, found)
        container, found = placing.ensure(this, found)
        gpus = _gpus_without_container(this, found)
        this = replace(
            this, environment=gpu_taking.exports(gpus), loopback=container.on_host_network
        )
        server, launched = launching.ensure(this, found)
        gpu_taking.keep(this, gpus, server)
        container = replace(container, gpus=gpus.shown or container.gpus)
        to = endpoint(runtime, container, server)
        forward = forwarded(host, name, request.local_port, to, context.progress, undo)
        with context.progress.step("Wait for JupyterLab's answer"):
            wait_for_answer(host, forward)
            access = refuse_open(host, forward, allowed=_open_allowed(this))
        record = _record(this, container, forward)
        record, further = _further_ports(this, record, PortEndpoint(to.place, 0, server.python))
        sessions.save(record)
    return SessionReport(
        name=name,
        host=request.host,
        container=name if runtime.engine else None,
        runtime=runtime.name,
        state="up",
        url=address(server, forward.local_port),
        local_port=forward.local_port,
        since=utc(forward.since),
        image=container.image,
        gpus=container.gpus,
        ports=further,
        access=access,
        idle_stop=server.idle_stop or None,
        detail=of_access(access, request.host),
        started_here=launched,
    )


def plan(request: StartRequest, context: Context) -> tuple[str, ...]:
    """Return the commands that `start` would run on the host; asks it, and changes nothing."""
    known, runtime = naming.session_of(request)
    host = link_on(request.host, context, without=known)
    runtime, name, found = _look(request, runtime, known, host, context)
    new = found.container is None or not (runtime.engine or _runs(found))
    gpus = gpu_taking.planned(request, host, engine=runtime.engine is not None) if new else Taken()
    commands = placing.plan(request, runtime, host, name, found, gpus)
    if not _runs(found) and (found.container is not None or request.options.packages):
        environment = "" if runtime.engine else gpu_taking.exports(gpus)
        loopback = (found.container or request.options).on_host_network
        launch = launching.later_script(
            request, runtime, name, launching.BY_HAND, environment, loopback=loopback
        )
        commands.append(runtime.detached(name, launch))
    return tuple(commands)


def _look(
    request: StartRequest, runtime: Runtime, known: str | None, host: Link, context: Context
) -> tuple[Runtime, str, Survey]:
    """Return the session's runtime, its name, and what is there already."""
    names = naming.names(request, host) if known is None else (known,)
    runtime.check_name(names[0])
    with context.progress.step(f"Look for {names[0]}"):
        runtime, first = surveyed(host, runtime, names[0], request, context)
        looks = [first]
        if looks[0].container is None:
            looks += [survey(host, runtime, name, check_gpus=True) for name in names[1:]]
    name, found = next(
        (pair for pair in zip(names, looks, strict=False) if pair[1].container),
        (names[0], looks[0]),
    )
    return runtime, name, found


def _explain_lost_gpus(this: Undertaking, found: Survey) -> None:
    if found.gpu_fault is not None:
        this.context.progress.note(f"{found.gpu_fault.why}; {found.gpu_fault.mend}")


def _gpus_without_container(this: Undertaking, found: Survey) -> Taken:
    """Return the GPUs of a server that is about to run without a container."""
    if this.runtime.engine:
        return Taken()
    if not _runs(found):
        return gpu_taking.take(this)
    known = sessions.find(this.request.host, this.name)
    gpus = known.gpus if known else None
    gpu_taking.explain_unchanged(this, gpus)
    return Taken(shown=gpus)


def _open_allowed(this: Undertaking) -> bool:
    known = sessions.find(this.request.host, this.name)
    return this.request.allow_open or (known is not None and known.open_allowed)


def _runs(found: Survey) -> bool:
    return found.findings is not None and bool(found.findings.servers)


def _further_ports(
    this: Undertaking, record: SessionRecord, to: PortEndpoint
) -> tuple[SessionRecord, tuple[PortReport, ...]]:
    """Forward the ports that the session had, and those that are asked for now.

    Args:
        this: the start.
        record: what is known of the session; it comes back with the local ports.
        to: where the ports are, whatever its own.
    """
    told = []
    for port in sorted({*(known.port for known in record.ports), *this.request.ports}):
        there, progress = replace(to, port=port), this.context.progress
        held = further_ports.hold(this.host, record, there, progress, this.undo)
        record = further_ports.with_port(record, PortRecord(port, held.local_port))
        told.append(held)
    return record, further_ports.reports(record, told)


def _record(this: Undertaking, container: Container, forward: ForwardStatus) -> SessionRecord:
    config = this.context.ssh_config
    known = sessions.find(this.request.host, this.name)
    return SessionRecord(
        host=this.request.host,
        name=this.name,
        typed=_typed(this) or (known.typed if known else None),
        runtime=this.runtime.name,
        local_port=forward.local_port,
        ssh_config=None if config is None else str(config.resolve()),
        image=container.image,
        gpus=container.gpus,
        ports=known.ports if known else (),
        open_allowed=_open_allowed(this),
    )


def _typed(this: Undertaking) -> str | None:
    """Return what the person calls the session, where that is not its name."""
    return None if this.request.container == this.name else this.request.container
