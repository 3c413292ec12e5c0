"""`jlr stop`: in layers, and never over running work unless it is forced."""

from __future__ import annotations

from dataclasses import dataclass, replace

from jlremote.errors import Busy, JlrError
from jlremote.host.script import command_line
from jlremote.host.shell import Host, run_script
from jlremote.jupyter import scripts
from jlremote.jupyter.api import JupyterApi, NoAnswer
from jlremote.jupyter.locate import Survey, survey
from jlremote.jupyter.server import Server
from jlremote.link.client import ForwardStatus
from jlremote.runtimes import docker_commands as docker
from jlremote.runtimes import docker_errors
from jlremote.runtimes.contract import Runtime
from jlremote.runtimes.table import runtime_named
from jlremote.storage import sessions
from jlremote.storage.sessions import SessionRecord
from jlremote.workflow import browser, unmount
from jlremote.workflow.context import Context
from jlremote.workflow.links import link_of
from jlremote.workflow.requests import StopRequest


@dataclass(frozen=True)
class StopReport:
    """What stopping a session did, as sentences, in order."""

    name: str
    host: str
    done: tuple[str, ...]


def stop(selector: str | None, request: StopRequest, context: Context) -> StopReport:
    """Stop a session: Jupyter and the forward, and the container if that is asked for.

    Raises:
        NotFound: there never was such a session.
        Busy: kernels run, and it is not forced.
    """
    return _stop(sessions.choose(selector), request, context)


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
    server = _server(found, forward)
    if server is not None:
        _refuse_if_busy(record, server, forward, request)
        with context.progress.step("Stop JupyterLab"):
            done.append(_end_server(host, runtime, record, server, forward, request))
    done += unmount.unmount_session(record.host, record.name, context, force=request.force)
    if host.unforward(record.name):
        done.append(f"released port {record.local_port}")
    if found.container is not None and runtime.engine:
        done += _end_container(host, record, request, context)
    browser.forget_redirect(record.local_port)
    _note(record, request)
    return StopReport(record.name, record.host, tuple(done) or ("it was stopped before",))


def _server(found: Survey, forward: ForwardStatus | None) -> Server | None:
    """Return the session's server: the one that was forwarded, else the one of ours."""
    running = found.findings.servers if found.findings else ()
    if forward is not None:
        forwarded = forward.endpoint.server.identity
        return next((server for server in running if server.identity == forwarded), None)
    return next((server for server in running if server.ours), None)


def _refuse_if_busy(
    record: SessionRecord, server: Server, forward: ForwardStatus | None, request: StopRequest
) -> None:
    if request.force or forward is None or not _ends(server, request):
        return
    try:
        kernels = JupyterApi(forward.local_port, server).kernels()
    except NoAnswer:
        return
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
    server: Server,
    forward: ForwardStatus | None,
    request: StopRequest,
) -> str:
    """End the server properly: kernels first, then the process, with patience, then without."""
    if not _ends(server, request):
        return "left Jupyter running: jlr did not launch it (`--force` ends it all the same)"
    asked = False
    if forward is not None:
        try:
            JupyterApi(forward.local_port, server).shut_down()
            asked = True
        except JlrError:
            pass  # then a signal has to do
    ending = scripts.end(
        record.name,
        server.pid,
        server.process_start,
        engine=runtime.engine,
        patience=10 if asked else 0,
    )
    ended = run_script(host, runtime.inside(record.name, ending))
    if ended.status != 0:
        raise JlrError(
            f"Jupyter (process {server.pid}) does not end: {ended.complaint}",
            hint="`--container` stops the container it runs in",
        )
    return "stopped JupyterLab"


def _end_container(
    host: Host, record: SessionRecord, request: StopRequest, context: Context
) -> list[str]:
    if request.remove:
        argv, did = docker.remove_argv(record.name), "removed the container"
    elif request.container:
        argv, did = docker.stop_argv(record.name), "stopped the container"
    else:
        return []
    with context.progress.step(f"{' '.join(argv[:2])} {record.name}"):
        ended = run_script(host, command_line(argv))
    if ended.status != 0:
        raise JlrError(f"`{command_line(argv)}` failed: {docker_errors.reason(ended)}")
    return [did]


def _note(record: SessionRecord, request: StopRequest) -> None:
    """Remember the port for the next start, or nothing at all once the container is removed."""
    if request.remove:
        sessions.delete(record)
    else:
        sessions.save(replace(record, forwarded=False))
