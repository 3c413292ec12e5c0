"""`jlr start`: a container, a Jupyter server in it, and a forward to it."""

from __future__ import annotations

import http.client  # noqa: F401 - for `JupyterApi`, loaded while the link's process begins
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from functools import partial

from jlremote.containers import jupyter_launch, provision
from jlremote.forwards.address import PortReport, reports
from jlremote.forwards.jupyter_check import refuse_open, wait_for_answer
from jlremote.forwards.local_ports import check_free, hold, host_port
from jlremote.gpus import allocation
from jlremote.gpus.allocation import AllocatedGpus
from jlremote.hosts.context import Context, known_way
from jlremote.hosts.engines import surveyed
from jlremote.hosts.links import connect, link_on, link_to
from jlremote.hosts.requests import StartContext, StartRequest
from jlremote.hosts.rollback import undone_on_failure
from jlremote.images import image_names
from jlremote.jupyter.endpoint import Endpoint, Server
from jlremote.jupyter.locate import server_endpoint
from jlremote.jupyter.survey import Survey, survey
from jlremote.laptop import paths, sessions
from jlremote.laptop.record_files import file_name
from jlremote.laptop.sessions import SessionRecord
from jlremote.link.client.link import Link
from jlremote.link.wire.states import ForwardStatus, State
from jlremote.listing.session_report import SessionReport, of_forward, with_job
from jlremote.place.host.sudo import by_hand
from jlremote.place.runtimes.docker.docker_errors import JustCreated
from jlremote.place.runtimes.runtime import Container, Runtime
from jlremote.place.runtimes.table import for_container
from jlremote.selection import naming
from jlremote.selection.host_search import with_others


def start(request: StartRequest, context: Context) -> SessionReport:
    """Start or reuse a container, a Jupyter server in it and a forward to it.

    What this call made is undone if a later step fails; what was there before is left alone.
    """
    known, runtime = naming.session_of(request)
    sessions.check_writable()
    if runtime.has_containers and request.image is not None:
        image_names.check(request.image)
    if request.local_port is not None:
        check_free(request.local_port, request.host, known)
    context = known_way(request.host, context)
    host = link_to(request.host, context, without=known)
    with ExitStack() as turn, undone_on_failure() as undo:
        connect(host, context)
        runtime, name, found = _look(request, runtime, known, host, context)
        if not found.server and turn.enter_context(_alone(request.host, name, context)):
            runtime, name, found = _look(request, runtime, known, host, context)
        attempt = StartContext(
            host, runtime, name, request, context, undo, owner=found.whose, user=found.user
        )
        if found.gpu_fault is not None:
            attempt.note(f"{found.gpu_fault.message}; {found.gpu_fault.hint}")
        if runtime.in_jobs:
            from jlremote.jobs import session_job  # for few hosts

            container, server, launched = session_job.ensure(attempt, found, turn.close)
        else:
            attempt, container, server, launched = _ensured(attempt, found, known)
        to = server_endpoint(attempt.runtime, container, server)
        forward = hold(host, name, to, context.progress, undo, exact=request.local_port)
        with context.progress.step("Wait for JupyterLab's answer"):
            hostname = wait_for_answer(host, forward)
            access = refuse_open(host, forward, allowed=attempt.open_allowed)
        record, ports = _remember(attempt, container, forward)
    up = replace(forward, state=str(State.UP))  # Jupyter has answered through it
    report = of_forward(record, up, access, hostname)
    if runtime.in_jobs:
        report = with_job(report, session_job.read_jobs(host, name).get(name))
    return replace(report, ports=ports, started_here=launched)


def _ensured(
    attempt: StartContext, found: Survey, known: str | None
) -> tuple[StartContext, Container, Server, bool]:
    try:
        attempt, container, found = provision.ensure(attempt, found)
    except JustCreated:  # from another laptop: that session is this one's, too
        provision.await_start(attempt)
        host, context = attempt.host, attempt.context
        *_, found = _look(attempt.request, attempt.runtime, known, host, context)
        attempt, container, found = provision.ensure(replace(attempt, owner=found.whose), found)
    gpus = _gpus_without_container(attempt, container, found)
    environment, loopback = allocation.exports(gpus), container.on_host_network
    attempt = replace(attempt, environment=environment, loopback=loopback)
    server, launched = jupyter_launch.ensure(attempt, found)
    allocation.keep(attempt, gpus, server, launched=launched)
    return attempt, replace(container, gpus=gpus.shown or container.gpus), server, launched


def plan(request: StartRequest, context: Context) -> tuple[str, ...]:
    """Return the commands that `start` would run on the host; asks it, and changes nothing."""
    known, runtime = naming.session_of(request)
    host = link_on(request.host, context, without=known)
    runtime, name, found = _look(request, runtime, known, host, context)
    new = found.container is None or not (runtime.has_containers or found.server)
    attempt = StartContext(
        host, runtime, name, request, context, ExitStack(), mark=jupyter_launch.BY_HAND
    )
    gpus = allocation.planned(attempt) if new else AllocatedGpus()
    commands = provision.plan(attempt, found, gpus)
    if not found.server and (found.container is not None or request.options.packages):
        environment = "" if runtime.has_containers else allocation.exports(gpus)
        loopback = (found.container or request.options).on_host_network
        attempt = replace(attempt, environment=environment, loopback=loopback)
        commands.append(runtime.detached(name, jupyter_launch.later_script(attempt)))
    return tuple(map(by_hand, commands))


def _look(
    request: StartRequest, runtime: Runtime, known: str | None, host: Link, context: Context
) -> tuple[Runtime, str, Survey]:
    names = naming.names(request, host) if known is None else (known,)
    runtime.check_name(names[0])
    with context.progress.step(f"Look for {names[0]}"):
        runtime, first = surveyed(host, runtime, names[0], request, context)
        looks = with_others(names, first, partial(survey, host, runtime, check_gpus=True))
        name, found = next((look for look in looks if look[1].container), (names[0], first))
        unnamed = request.container is None and naming.remembered(request) is None
        if found.whose is not None and unnamed:
            # Another user has a container of the default name.
            name = f"{naming.login_name(host)}_{names[0]}"
            found = survey(host, runtime, name, check_gpus=True)
        runtime, name, found = _same_container(host, runtime, name, found, context)
    record = sessions.find(request.host, name)
    agreed = request.as_shared or (record is not None and record.shared)
    naming.refuse_other_owner(request.host, name, found.whose, agreed=agreed)
    return runtime, name, found


# A known session's container that was renamed is meant by its present name, and by the session's
# if no other container has that.
def _same_container(
    host: Link, runtime: Runtime, name: str, found: Survey, context: Context
) -> tuple[Runtime, str, Survey]:
    known = sessions.find(host.name, name)
    if found.container is not None:
        known = sessions.of_container(host.name, found.container.id)
    if known is None or (found.container is not None and known.name == name):
        return runtime, name, found
    exact = for_container(runtime, known.container_id)
    again = survey(host, exact, known.name, check_gpus=True)
    if again.container is None or not (called := again.container.renamed):
        return runtime, name, found
    context.progress.note(f"the container of session `{known.name}` is now called `{called}`")
    return exact, known.name, again


@contextmanager
def _alone(host: str, name: str, context: Context) -> Iterator[bool]:
    from filelock import FileLock, Timeout  # 20 ms that only a new session needs

    lock = FileLock(paths.runtime_directory() / file_name("start", host, name), mode=0o600)
    waited = False
    try:
        lock.acquire(timeout=0)
    except Timeout:
        waited = True
        with context.progress.step(f"Wait for another start of {name}"):
            lock.acquire()
    try:
        yield waited
    finally:
        lock.release()


def _gpus_without_container(
    attempt: StartContext, container: Container, found: Survey
) -> AllocatedGpus:
    if attempt.runtime.has_containers:
        return AllocatedGpus()
    if not found.server:
        taken = allocation.take(attempt, of=container if attempt.runtime.has_images else None)
        if attempt.runtime.has_images and taken.engine is not None:
            with attempt.context.progress.step("Check the GPUs in the image"):
                allocation.prove(attempt, taken.engine)
        return taken
    gpus = attempt.known.gpus if attempt.known else None
    named = gpus is not None and gpus not in ("all", "none")
    allocation.explain_unchanged(attempt, f"device={gpus}" if named else gpus)
    return AllocatedGpus(shown=gpus)


def _remember(
    attempt: StartContext, container: Container, forward: ForwardStatus
) -> tuple[SessionRecord, tuple[PortReport, ...]]:
    record, held = _record(attempt, container, forward), []
    ports = {each.port: each for each in (*record.ports, *attempt.request.ports)}
    for port, known in sorted(ports.items()):
        to = Endpoint(forward.endpoint.place, port, python=forward.server.python)
        if known.on_host:
            to = host_port(attempt.host, port)
        status = hold(attempt.host, record.name, to, attempt.context.progress, attempt.undo)
        record = record.with_port(replace(known, local_port=status.local_port))
        held.append(status)
    sessions.save(record)
    if record.notify or (attempt.known and attempt.known.notify):
        attempt.host.notify(record.name, wanted=record.notify)
    return record, reports(record, held)


def _record(attempt: StartContext, container: Container, forward: ForwardStatus) -> SessionRecord:
    config, known, wanted = attempt.context.ssh_config, attempt.known, attempt.request.notify
    typed = attempt.request.container
    if typed in (attempt.name, container.renamed):  # another container may have that name later
        typed = None
    return SessionRecord(
        host=attempt.request.host,
        name=attempt.name,
        typed=typed or (known.typed if known else None),
        runtime=attempt.runtime.name,
        local_port=forward.local_port,
        ssh_config=None if config is None else str(config.resolve()),
        image=container.image,
        gpus=container.gpus,
        container_id=container.id if attempt.runtime.engine else "",
        ports=known.ports if known else (),
        shared=attempt.owner is not None,
        server=attempt.server or 0,
        open_allowed=attempt.open_allowed,
        notify=bool(known and known.notify if wanted is None else wanted),
    )
