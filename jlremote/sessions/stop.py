"""`jlr stop`: end a session layer by layer; what works only with `--force`."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, replace

from jlremote.errors import Busy, JlrError
from jlremote.forwards import browser, forwards
from jlremote.hosts.context import Context
from jlremote.hosts.links import link_of
from jlremote.hosts.requests import StopRequest, stop_command
from jlremote.hosts.rollback import undone_on_failure
from jlremote.jupyter import scripts
from jlremote.jupyter.api import JupyterApi
from jlremote.jupyter.ports.locate import server_endpoint
from jlremote.jupyter.server import Server
from jlremote.jupyter.survey import Survey, survey
from jlremote.laptop import sessions
from jlremote.laptop.sessions import SessionRecord
from jlremote.link.client.link import Link
from jlremote.link.wire.status import ForwardStatus
from jlremote.mounts import unmount
from jlremote.place.host.contract import Host, run_script
from jlremote.place.host.shell_text import command_line
from jlremote.place.runtimes.docker import docker_commands as docker
from jlremote.place.runtimes.docker import networks
from jlremote.place.runtimes.engine.engine_errors import reason
from jlremote.place.runtimes.engine.kinds import Engine
from jlremote.place.runtimes.runtime import START_LABEL, Container, Runtime
from jlremote.place.runtimes.table import runtime_of
from jlremote.selection import destruction, session_selection
from jlremote.selection.destruction import Destruction
from jlremote.sessions import losses

ANY_PORT = 0
ANSWER_SECONDS = 5.0


@dataclass(frozen=True)
class StopReport:
    """The steps that stopped a session, as sentences in order."""

    name: str
    host: str
    done: tuple[str, ...]


@dataclass(frozen=True)
class StopAllReport:
    """What `jlr stop --all` did."""

    done: tuple[StopReport, ...]
    refused: JlrError | None  # what was not stopped and why, `None` if all were stopped


def stop(selector: str | None, request: StopRequest, context: Context) -> StopReport:
    """Stop a session: Jupyter and the forward, and the container on request.

    Raises:
        NotFound: there is no such session or job.
        Usage: the session must be named.
        Busy: kernels or programs work, without `force`.
    """
    record = None
    if selector is None:
        known = sessions.load_all()
        record = destruction.default_session(known, sessions.latest_stop(), request)
    if record is None:
        may_guess = not request.destroys
        record = session_selection.chosen(
            selector, context, or_job=True, as_shared=request.force, guess=may_guess
        )
    return _stop(record, request, context, named=True)


def stop_all(request: StopRequest, context: Context) -> StopAllReport:
    """Stop every session, also if one of them fails; those of other users are only left.

    Raises:
        JlrError: the person said no.
    """
    known = [record for record in sessions.load_all() if record.forwarded]
    done: list[StopReport] = []
    refused: list[JlrError] = []
    if not request.yes:
        known, planned = _all_of(known, request, context, refused)
        destruction.confirm(planned, context, yes=False)
    for record in known:
        try:
            done.append(_stop(record, replace(request, yes=True), context, named=False))
        except JlrError as error:
            refused.append(error)
    return StopAllReport(tuple(done), together(refused))


def _all_of(
    known: Sequence[SessionRecord], request: StopRequest, context: Context, refused: list[JlrError]
) -> tuple[list[SessionRecord], Destruction]:
    """Return the sessions that can be stopped, and what ends with them; note why others cannot."""
    what = "the sessions"
    if request.ends_container:
        what += " and delete their containers" if request.remove else " and their containers"
    planned, stoppable = [], []
    for record in known:
        try:
            with undone_on_failure() as undo:
                look = _looked(record, request, context, undo, named=False)
        except JlrError as error:
            refused.append(error)
            continue
        stoppable.append(record)
        selector, owner = record.selector, look.owner
        lost = "; ".join(look.planned.losses)
        if owner is None:
            planned.append(": ".join(filter(None, (f"the session {selector}", lost))))
        elif not request.ends_container:
            planned.append(f"the forward of {selector}, which belongs to `{owner}`")
    return stoppable, Destruction(f"Stop all {what}?", tuple(planned))


def together(refused: Sequence[JlrError]) -> JlrError | None:
    """Return one error for all sessions that were not stopped, `None` for none."""
    if len(refused) <= 1:
        return next(iter(refused), None)
    hints = dict.fromkeys(error.hint for error in refused if error.hint)
    kinds = {type(error) for error in refused}
    kind = kinds.pop() if len(kinds) == 1 else JlrError
    return kind("; ".join(error.message for error in refused), hint="; ".join(hints) or None)


@dataclass(frozen=True)
class _Look:
    """What a stop has found."""

    host: Link
    runtime: Runtime
    found: Survey
    forward: ForwardStatus | None
    api: JupyterApi | None  # of the server that ends, or would end by force
    planned: Destruction
    owner: str | None = None  # the other user whose session it is, which is only left


def _looked(
    record: SessionRecord, request: StopRequest, context: Context, undo: ExitStack, *, named: bool
) -> _Look:
    """Look at what would end; another user's session ends only by `force` and its name.

    Raises:
        Busy: something works in it, or it is paused.
    """
    runtime, host = runtime_of(record), link_of(record, context)
    with context.progress.step(f"Look for {record.name}"):
        forward = host.status(connect=True).forward(record.name)
        found = survey(host, runtime, record.name)
    if found.whose is not None and not (request.force and named):
        nothing = Destruction("", ())
        return _Look(host, runtime, found, forward, None, nothing, found.whose)
    _refuse_paused(record, found.container, runtime, request)
    _refuse_unasked(record, found, runtime, request)
    server, api = _server(found, forward, request), None
    if server is not None and found.container is not None:
        to = server_endpoint(runtime, found.container, server)
        # One that was not forwarded is forwarded meanwhile: it may be in use.
        forwards.put_back_later(host, record.name, None, context.progress, undo)
        reached = host.forward(record.name, ANY_PORT, to)
        api = JupyterApi(reached.local_port, reached.server, ANSWER_SECONDS)
    work = losses.work(host, runtime, found, api, request)
    losses.refuse_if_busy(record, work, request)
    planned = losses.planned(host, runtime, record, found, work, request)
    return _Look(host, runtime, found, forward, api, planned)


def _stop(
    record: SessionRecord, request: StopRequest, context: Context, *, named: bool
) -> StopReport:
    done: list[str] = []
    with undone_on_failure() as undo:
        look = _looked(record, request, context, undo, named=named)
        host, runtime, found = look.host, look.runtime, look.found
        if look.owner is not None:
            return _left(host, record, look.owner, request)
        destruction.confirm(look.planned, context, yes=request.yes)
        if runtime.in_jobs:
            from jlremote.jobs.stories import session_job  # loads all that submits jobs, too

            with context.progress.step("Cancel the job"):
                done += session_job.cancel(host, runtime, record.name, request)
        elif look.api is not None:
            with context.progress.step("Stop JupyterLab"):
                done.append(_end_server(host, runtime, record, look.api, request))
    done += unmount.unmount_session(record.host, record.name, context, force=request.force)
    done += _released(host, record, forwarded=look.forward is not None)
    if found.container is not None and runtime.has_containers:
        done += _end_container(host, runtime.required_engine, found.container, request, context)
    elif found.container and runtime.has_images and not runtime.in_jobs and request.remove:
        removed = run_script(host, scripts.clear(runtime, record.name))
        if removed.status != 0:
            raise JlrError(f"cannot delete the files of `{record.name}`: {removed.complaint}")
        done.append("deleted its files")
    browser.forget_redirect(record.local_port)
    _note(record, request)
    return StopReport(record.name, record.host, tuple(done) or ("it was stopped already",))


def _refuse_paused(
    record: SessionRecord, container: Container | None, runtime: Runtime, request: StopRequest
) -> None:
    """Refuse to stop what is in a paused container: nothing there can be asked or ended.

    Raises:
        Busy: it is paused, and its container is not to end by `force`.
    """
    if container is None or not container.paused:
        return
    if request.ends_container and request.force:
        return
    unpause = runtime.shown("unpause", container.called)
    raise Busy(
        f"the container of `{record.selector}` is paused, so its Jupyter cannot be stopped",
        hint=f"`{unpause}` on the host resumes it; "
        f"`{_with_container(record, request, force=True)}` ends it as it is",
    )


def _refuse_unasked(
    record: SessionRecord, found: Survey, runtime: Runtime, request: StopRequest
) -> None:
    """Refuse to stop what could not be asked for, unless all of it is to end by `force`.

    Raises:
        Busy: it could not be asked for.
    """
    whole = request.ends_container or runtime.in_jobs
    if found.unasked is None or (whole and request.force):
        return
    forced = replace(request, force=True, container=runtime.has_containers)
    command = stop_command(record.host, record.name, forced)
    raise Busy(
        f"cannot ask `{record.selector}` for busy kernels and programs: {found.unasked}",
        hint=f"nothing was stopped; `{command}` ends all that runs there",
    )


def _left(host: Link, record: SessionRecord, owner: str, request: StopRequest) -> StopReport:
    """Release the ports of another user's session that was joined, and leave it running.

    Raises:
        JlrError: it was not joined here, or its container is to end.
    """
    if not record.shared or request.ends_container:
        raise JlrError(
            f"`{record.selector}` belongs to `{owner}`",
            hint=f"ask `{owner}` to stop it; jlr does that for another user only by its name, "
            "with `--force`",
        )
    released = _released(host, record, forwarded=True)
    browser.forget_redirect(record.local_port)
    _note(record, request)
    done = (*released, f"left Jupyter running: it belongs to `{owner}`")
    return StopReport(record.name, record.host, done)


def _released(host: Link, record: SessionRecord, *, forwarded: bool) -> list[str]:
    """Release the session's ports and say which."""
    done = []
    if host.unforward(record.name) and forwarded:
        done.append(f"released port {record.local_port}")
    further = (port for port in record.ports if host.unforward(record.name, port.port))
    return done + [f"released port {port.local_port}" for port in further]


def _server(found: Survey, forward: ForwardStatus | None, request: StopRequest) -> Server | None:
    """Return the server to end: the forwarded one, else the one that jlr launched.

    A container ends with any server in it, so with `--container` each of them counts.
    """
    if found.unasked is not None:
        return None  # all ends by force
    forwarded = forward.server.identity if forward else None
    likely = sorted(found.servers, key=lambda server: server.identity != forwarded)
    with_it = request.ends_container
    return next((s for s in likely if s.identity == forwarded or s.ours or with_it), None)


def _end_server(
    host: Host, runtime: Runtime, record: SessionRecord, api: JupyterApi, request: StopRequest
) -> str:
    """End the server: ask it first, then terminate it, then kill it."""
    server = api.server
    if not losses.ends(server, request):
        return "left Jupyter running: jlr did not launch it (`--force` ends it)"
    patience = 0
    with suppress(JlrError):  # a signal ends it, too
        api.shut_down()
        patience = 10
    ending = scripts.end(runtime, record.name, server.pid, server.process_start, patience=patience)
    ended = run_script(host, runtime.inside(record.name, ending))
    if ended.status != 0 and losses.still_runs(host, runtime, record.name, ended.status):
        raise JlrError(
            f"cannot stop Jupyter (process {server.pid}): {ended.complaint}",
            hint=f"`{_with_container(record, request)}` stops its container",
        )
    return "stopped JupyterLab"


def _with_container(record: SessionRecord, request: StopRequest, *, force: bool = False) -> str:
    request = StopRequest(container=True, force=force, again=request.again)
    return stop_command(record.host, record.name, request)


def _end_container(
    host: Host, engine: Engine, container: Container, request: StopRequest, context: Context
) -> list[str]:
    name, goes = container.called, bool(container.options.remove)
    if request.remove:
        argv, verb, did = docker.remove_argv(engine, container.id), "rm", "removed the container"
    elif request.container:
        argv, verb, did = docker.stop_argv(engine, container.id), "stop", "stopped the container"
    else:
        return []
    with context.progress.step(engine.shown(verb, name)):
        ending = docker.ended_script(engine, argv, container.id, goes=goes)
        mark = container.labels.get(START_LABEL, "") if container.is_session else ""
        if mark and (request.remove or goes):
            ending = f"(\n{ending}) || exit\n{networks.removal(engine, mark)}"
        if container.paused:  # old engines stop none that is
            ending = f"{command_line(engine('unpause', container.id))} >/dev/null 2>&1\n{ending}"
        ended = run_script(host, ending)
    if ended.status != 0:
        raise JlrError(f"`{engine.shown(verb, name)}` failed: {reason(ended)}")
    return [f"{did}, and it is gone (`--rm`)" if goes and not request.remove else did]


def _note(record: SessionRecord, request: StopRequest) -> None:
    """Keep the port for the next start; delete the record of a container that was removed."""
    sessions.save_stop(record.host, record.name)
    if request.remove:
        sessions.delete(record)
    else:
        sessions.save(replace(record, forwarded=False, ports=()))
