"""`jlr start`: the main job."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import replace
from functools import partial

from jlremote.errors import NameNotResolved
from jlremote.host.sudo import by_hand
from jlremote.jupyter.api import Access
from jlremote.jupyter.survey import Survey, survey
from jlremote.link.client.link import Link
from jlremote.link.wire.states import State
from jlremote.link.wire.status import ForwardStatus
from jlremote.ports.locate import server_endpoint
from jlremote.runtimes.contract import Container, Runtime
from jlremote.storage import sessions
from jlremote.storage.records import matching
from jlremote.workflow.container import gpu_allocation, jupyter_launch, provision
from jlremote.workflow.container.gpu_allocation import AllocatedGpus
from jlremote.workflow.container.start_context import StartContext
from jlremote.workflow.forward.forwards import hold
from jlremote.workflow.forward.jupyter_check import refuse_open, wait_for_answer
from jlremote.workflow.host.context import Context
from jlremote.workflow.host.engines import surveyed
from jlremote.workflow.host.links import connect, link_on, link_to
from jlremote.workflow.host.requests import StartRequest
from jlremote.workflow.host.rollback import undone_on_failure
from jlremote.workflow.host.ssh_config import known_way
from jlremote.workflow.host.start_lock import alone
from jlremote.workflow.selection import naming
from jlremote.workflow.selection.candidates import with_others
from jlremote.workflow.session.remember import remember
from jlremote.workflow.session.report import SessionReport, of_forward


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
    with ExitStack() as turn, undone_on_failure() as undo:
        _connect(host, context)
        runtime, name, found = _look(request, runtime, known, host, context)
        if not found.server and turn.enter_context(alone(request.host, name, context)):
            runtime, name, found = _look(request, runtime, known, host, context)
        start = StartContext(host, runtime, name, request, context, undo)
        _explain_lost_gpus(start, found)
        start, container, found = provision.ensure(start, found)
        start, gpus = _settled(start, container, found)
        server, launched = jupyter_launch.ensure(start, found)
        gpu_allocation.keep(start, gpus, server)
        to = server_endpoint(start.runtime, container, server)
        forward = hold(host, name, to, context.progress, undo, exact=request.local_port)
        access = _answered(start, forward)
        container = replace(container, gpus=gpus.shown or container.gpus)
        record, ports = remember(start, container, forward)
    up = replace(forward, state=str(State.UP))  # Jupyter has answered through it
    return replace(of_forward(record, up, access), ports=ports, started_here=launched)


def plan(request: StartRequest, context: Context) -> tuple[str, ...]:
    """Return the commands that `start` would run on the host; asks it, and changes nothing."""
    known, runtime = naming.session_of(request)
    host = link_on(request.host, context, without=known)
    runtime, name, found = _look(request, runtime, known, host, context)
    new = found.container is None or not (runtime.has_containers or found.server)
    start = StartContext(
        host, runtime, name, request, context, ExitStack(), launch_id=jupyter_launch.BY_HAND
    )
    gpus = gpu_allocation.planned(start) if new else AllocatedGpus()
    commands = provision.plan(start, found, gpus)
    if not found.server and (found.container is not None or request.options.packages):
        environment = "" if runtime.has_containers else gpu_allocation.exports(gpus)
        loopback = (found.container or request.options).on_host_network
        start = replace(start, environment=environment, loopback=loopback)
        commands.append(runtime.detached(name, jupyter_launch.later_script(start)))
    return tuple(map(by_hand, commands))


def _connect(host: Link, context: Context) -> None:
    """Connect the link; a session's name in the host's place is explained.

    Raises:
        NameNotResolved: the host has no address.
    """
    try:
        connect(host, context)
    except NameNotResolved as unknown:
        for record in matching(sessions.load_all(), host.name)[:1]:
            hint = f"`jlr start {record.host} {record.name}` starts the session `{host.name}`"
            raise NameNotResolved(unknown.message, hint=hint) from unknown
        raise


def _look(
    request: StartRequest, runtime: Runtime, known: str | None, host: Link, context: Context
) -> tuple[Runtime, str, Survey]:
    """Return the session's runtime, its name, and what is there already."""
    names = naming.names(request, host) if known is None else (known,)
    runtime.check_name(names[0])
    with context.progress.step(f"Look for {names[0]}"):
        runtime, first = surveyed(host, runtime, names[0], request, context)
        looks = with_others(names, first, partial(survey, host, runtime, check_gpus=True))
        there = next((look for look in looks if look[1].container), (names[0], first))
    return runtime, *there


def _explain_lost_gpus(start: StartContext, found: Survey) -> None:
    if found.gpu_fault is not None:
        start.note(f"{found.gpu_fault.why}; {found.gpu_fault.mend}")


def _settled(
    start: StartContext, container: Container, found: Survey
) -> tuple[StartContext, AllocatedGpus]:
    """Return the start as its container has it, and the GPUs of a server without one."""
    gpus = _gpus_without_container(start, found)
    environment, loopback = gpu_allocation.exports(gpus), container.on_host_network
    return replace(start, environment=environment, loopback=loopback), gpus


def _gpus_without_container(start: StartContext, found: Survey) -> AllocatedGpus:
    """Return the GPUs of a server that is about to run without a container."""
    if start.runtime.has_containers:
        return AllocatedGpus()
    if not found.server:
        return gpu_allocation.take(start)
    gpus = start.known.gpus if start.known else None
    gpu_allocation.explain_unchanged(start, gpus)
    return AllocatedGpus(shown=gpus)


def _answered(start: StartContext, forward: ForwardStatus) -> Access:
    """Return what the server asks for, which has answered through the forward."""
    with start.context.progress.step("Wait for JupyterLab's answer"):
        wait_for_answer(start.host, forward)
        return refuse_open(start.host, forward, allowed=start.open_allowed)
