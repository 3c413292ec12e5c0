"""`jlr stop`: in layers, and never over running work unless it is forced."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import dataclass, replace

from jlremote.errors import Busy, JlrError
from jlremote.host.contract import Host, run_script
from jlremote.host.shell_text import command_line
from jlremote.jupyter import scripts
from jlremote.jupyter.api import JupyterApi
from jlremote.jupyter.server import Server
from jlremote.jupyter.survey import Survey, survey
from jlremote.link.client.link import Link
from jlremote.link.wire.status import ForwardStatus
from jlremote.ports.endpoint import Endpoint
from jlremote.ports.routes import server_endpoint
from jlremote.runtimes.contract import Container, Runtime
from jlremote.runtimes.docker import docker_commands as docker
from jlremote.runtimes.engine.engine import Engine
from jlremote.runtimes.engine.engine_errors import reason
from jlremote.runtimes.table import runtime_named
from jlremote.storage import sessions
from jlremote.storage.sessions import SessionRecord
from jlremote.workflow.forward import forwards
from jlremote.workflow.host.context import Context
from jlremote.workflow.host.links import link_of
from jlremote.workflow.host.requests import StopRequest
from jlremote.workflow.host.rollback import undone_on_failure
from jlremote.workflow.mounts import unmount
from jlremote.workflow.selection import session_selection
from jlremote.workflow.session import browser

ANY_PORT = 0
ANSWER_SECONDS = 5.0


@dataclass(frozen=True)
class StopReport:
    """What stopping a session did, as sentences, in order."""

    name: str
    host: str
    done: tuple[str, ...]


def stop(selector: str | None, request: StopRequest, context: Context) -> StopReport:
    """Stop a session: Jupyter and the forward, and the container if that is asked for.

    Raises:
        NotFound: there is no such session, and no job.
        Busy: kernels run, and it is not forced.
    """
    return _stop(session_selection.chosen(selector, context, or_job=True), request, context)


def stop_all(request: StopRequest, context: Context) -> list[StopReport]:
    """Stop every session; one that refuses does not keep the others from it.

    Raises:
        JlrError: what the first one that refused said, once the others are stopped.
    """
    done: list[StopReport] = []
    refused: list[JlrError] = []
    for record in sessions.load_all():
        if record.forwarded:
            try:
                done.append(_stop(record, request, context))
            except JlrError as error:
                refused.append(error)
    if refused:
        raise refused[0]
    return done


def _stop(record: SessionRecord, request: StopRequest, context: Context) -> StopReport:
    runtime = runtime_named(record.runtime)
    host = link_of(record, context)
    done: list[str] = []
    with context.progress.step(f"Look for {record.name}"):
        forward = host.status(connect=True).forward(record.name)
        found = survey(host, runtime, record.name)
    server = _server(found, forward, request)
    if server is not None and found.container is not None:
        to = server_endpoint(runtime, found.container, server)
        with undone_on_failure() as undo:
            api = _ask_first(host, record, to, request, context, undo)
            with context.progress.step("Stop JupyterLab"):
                done.append(_end_server(host, runtime, record, api, request))
    done += unmount.unmount_session(record.host, record.name, context, force=request.force)
    if host.unforward(record.name) and forward is not None:
        done.append(f"released port {record.local_port}")
    for port in record.ports:
        if host.unforward(record.name, port.port):
            done.append(f"released port {port.local_port}")
    if found.container is not None and runtime.engine is not None:
        done += _end_container(host, runtime.engine, found.container, request, context)
    browser.forget_redirect(record.local_port)
    _note(record, request)
    return StopReport(record.name, record.host, tuple(done) or ("it was stopped before",))


def _server(found: Survey, forward: ForwardStatus | None, request: StopRequest) -> Server | None:
    """Return the session's server: the one that was forwarded, else the one of ours.

    With the container goes whatever server runs in it, so that one counts too.
    """
    forwarded = forward.server.identity if forward else None
    with_it = request.container or request.remove
    likely = sorted(found.servers, key=lambda server: server.identity != forwarded)
    return next((s for s in likely if s.identity == forwarded or s.ours or with_it), None)


def _ask_first(
    host: Link,
    record: SessionRecord,
    to: Endpoint,
    request: StopRequest,
    context: Context,
    undo: ExitStack,
) -> JupyterApi:
    """Return a way to ask the server, which has just said that no kernel is busy.

    Not only a session that is forwarded is asked: another laptop may work in it.
    """
    forwards.put_back_later(host, record.name, None, context.progress, undo)
    forward = host.forward(record.name, ANY_PORT, to)
    api = JupyterApi(forward.local_port, forward.server, ANSWER_SECONDS)
    _refuse_if_busy(record, api, request)
    return api


def _refuse_if_busy(record: SessionRecord, api: JupyterApi, request: StopRequest) -> None:
    if request.force or not _ends(api.server, request):
        return
    try:
        kernels = api.kernels()
    except JlrError as silent:
        raise Busy(
            f"`{record.host}/{record.name}` does not tell whether kernels run: {silent.message}",
            hint="stop it all the same: `jlr stop --force`",
        ) from silent
    busy = [kernel.notebook for kernel in kernels if kernel.state == "busy"]
    if busy:
        names = ", ".join(f"`{notebook}`" for notebook in busy)
        raise Busy(
            f"`{record.host}/{record.name}` has busy kernels: {names}",
            hint="wait for them, or stop anyway: `jlr stop --force`",
        )


def _ends(server: Server, request: StopRequest) -> bool:
    return server.ours or request.force or request.container or request.remove


def _end_server(
    host: Host,
    runtime: Runtime,
    record: SessionRecord,
    api: JupyterApi,
    request: StopRequest,
) -> str:
    """End the server properly: kernels first, then the process, with patience, then without."""
    server = api.server
    if not _ends(server, request):
        return "left Jupyter running: jlr did not launch it (`--force` ends it all the same)"
    asked = True
    try:
        api.shut_down()
    except JlrError:
        asked = False  # then a signal has to do
    patience = 10 if asked else 0
    ending = scripts.end(runtime, record.name, server.pid, server.process_start, patience=patience)
    ended = run_script(host, runtime.inside(record.name, ending))
    if ended.status != 0 and _runs(host, runtime, record.name):
        raise JlrError(
            f"Jupyter (process {server.pid}) does not end: {ended.complaint}",
            hint="`--container` stops the container it runs in",
        )
    return "stopped JupyterLab"


def _runs(host: Host, runtime: Runtime, name: str) -> bool:
    """Return whether the container runs: one whose own process was the server ends with it."""
    container = survey(host, runtime, name).container
    return container is not None and container.running


def _end_container(
    host: Host, engine: Engine, container: Container, request: StopRequest, context: Context
) -> list[str]:
    name, goes = container.name, bool(container.options.remove)
    if request.remove:
        argv, verb, did = docker.remove_argv(engine, name), "rm", "removed the container"
    elif request.container:
        argv, verb, did = docker.stop_argv(engine, name), "stop", "stopped the container"
    else:
        return []
    with context.progress.step(engine.shown(verb, name)):
        ended = run_script(host, docker.ended_script(engine, argv, name, goes=goes))
    if ended.status != 0:
        raise JlrError(f"`{command_line(argv)}` failed: {reason(ended)}")
    return [f"{did}, and it is gone (`--rm`)" if goes and not request.remove else did]


def _note(record: SessionRecord, request: StopRequest) -> None:
    """Remember the port for the next start, or nothing at all once the container is removed."""
    if request.remove:
        sessions.delete(record)
    else:
        sessions.save(replace(record, forwarded=False, ports=()))
