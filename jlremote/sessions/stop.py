"""`jlr stop`: end a session layer by layer; what works only with `--force`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, replace

from jlremote.errors import Busy, JlrError
from jlremote.forwards import browser, local_ports
from jlremote.hosts.context import Context
from jlremote.hosts.links import link_of
from jlremote.hosts.requests import StopRequest
from jlremote.hosts.rollback import undone_on_failure
from jlremote.jupyter import scripts
from jlremote.jupyter.api import JupyterApi
from jlremote.jupyter.endpoint import Server
from jlremote.jupyter.locate import server_endpoint
from jlremote.jupyter.survey import survey
from jlremote.laptop import sessions
from jlremote.laptop.sessions import SessionRecord
from jlremote.link.client.link import Link
from jlremote.mounts import known_mounts
from jlremote.place.host.contract import Host, run_script
from jlremote.place.host.shell_text import command_line
from jlremote.place.runtimes.docker import docker_commands as docker
from jlremote.place.runtimes.docker import networks
from jlremote.place.runtimes.engine.engine_errors import reason
from jlremote.place.runtimes.engine.kinds import Engine
from jlremote.place.runtimes.runtime import START_LABEL, Container
from jlremote.place.runtimes.table import runtime_of
from jlremote.selection import destruction, session_selection
from jlremote.selection.destruction import Destruction
from jlremote.sessions import losses
from jlremote.sessions.losses import SessionEnding

ANY_PORT = 0
ANSWER_SECONDS = 5.0


@dataclass(frozen=True)
class StopReport:
    """The steps that stopped a session."""

    name: str
    host: str
    done: tuple[str, ...]  # sentences in order


def stop(selector: str | None, request: StopRequest, context: Context) -> StopReport:
    """Stop a session, on request its container (`NotFound`; `Usage`: unnamed; `Busy`: it works)."""
    record, forced = None, request.force
    if selector is None:
        known = sessions.load_all()
        record = destruction.default_session(known, sessions.latest_stop(), request)
    record = record or session_selection.chosen(
        selector, context, or_job=True, as_shared=forced, guess=not request.destroys, by_name=True
    )
    return _stop(record, request, context, named=True)


def stop_all(request: StopRequest, context: Context) -> Iterator[StopReport]:
    """Stop every session, also if one of them fails; those of other users are only left.

    Raise `JlrError` if the person said no, or a session was not stopped; the others are by then.
    """
    known = [record for record in sessions.load_all() if record.forwarded]
    refused: list[JlrError] = []
    if not request.yes:
        known, planned = _all_of(known, request, context, refused)
        destruction.confirm(planned, context, yes=False)
    for record in known:
        try:
            yield _stop(record, replace(request, yes=True), context, named=False)
        except JlrError as error:
            refused.append(error)
    if failure := together(refused):
        raise failure


def _all_of(
    known: Sequence[SessionRecord], request: StopRequest, context: Context, refused: list[JlrError]
) -> tuple[list[SessionRecord], Destruction]:
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
        if look.planned is not None:
            lost = (f"the session {record.selector}", "; ".join(look.planned.losses))
            planned.append(": ".join(filter(None, lost)))
        elif not request.ends_container:
            owner = f"which belongs to `{look.found.whose}`"
            planned.append(f"the forward of {record.selector}, {owner}")
    return stoppable, Destruction(f"Stop all {what}?", tuple(planned))


def together(refused: Sequence[JlrError]) -> JlrError | None:
    """Return one error for all sessions that were not stopped, `None` for none."""
    if len(refused) <= 1:
        return next(iter(refused), None)
    hints = dict.fromkeys(error.hint for error in refused if error.hint)
    kinds = {type(error) for error in refused}
    kind = kinds.pop() if len(kinds) == 1 else JlrError
    return kind("; ".join(error.message for error in refused), hint="; ".join(hints) or None)


def _looked(
    record: SessionRecord, request: StopRequest, context: Context, undo: ExitStack, *, named: bool
) -> SessionEnding:
    runtime, host = runtime_of(record), link_of(record, context)
    with context.progress.step(f"Look for {record.name}"):
        forward = host.status(connect=True).forward(record.name)
        found = survey(host, runtime, record.name)
    ending = SessionEnding(host, runtime, record, request, found, forward)
    # Another user's session ends only by `force` and its name.
    if found.whose is not None and not (request.force and named):
        return ending
    _refuse_unsure(ending)
    server, api = _server(ending), None
    if server is not None and found.container is not None:
        to = server_endpoint(runtime, found.container, server)
        # One that was not forwarded is forwarded meanwhile: it may be in use.
        local_ports.put_back_later(host, record.name, None, context.progress, undo)
        reached = host.forward(record.name, ANY_PORT, to)
        api = JupyterApi(reached.local_port, reached.server, ANSWER_SECONDS)
    work = losses.work(ending, api)
    losses.refuse_if_busy(ending, work)
    planned = losses.planned(ending, work)
    if not named:  # `--all` asks for idle kernels, too
        planned = replace(planned, losses=planned.losses or work.losses)
    return replace(ending, api=api, planned=planned)


def _stop(
    record: SessionRecord, request: StopRequest, context: Context, *, named: bool
) -> StopReport:
    done: list[str] = []
    with undone_on_failure() as undo:
        ending = _looked(record, request, context, undo, named=named)
        host, runtime, container = ending.host, ending.runtime, ending.found.container
        if ending.planned is None:
            return _left(ending)
        destruction.confirm(ending.planned, context, yes=request.yes)
        if runtime.in_jobs:
            from jlremote.jobs import session_job  # loads all that submits jobs, too

            with context.progress.step("Cancel the job"):
                done += session_job.cancel(host, runtime, record.name, request)
        elif ending.api is not None:
            with context.progress.step("Stop JupyterLab"):
                done.append(_end_server(ending, ending.api))
    done += known_mounts.unmount_session(record.host, record.name, context, force=request.force)
    done += _released(host, record, forwarded=ending.forward is not None)
    if container is not None and runtime.has_containers:
        done += _end_container(host, runtime.required_engine, container, request, context)
    elif container and runtime.has_images and not runtime.in_jobs and request.remove:
        removed = run_script(host, scripts.clear(runtime, record.name))
        if removed.status != 0:
            raise JlrError(f"cannot delete the files of `{record.name}`: {removed.complaint}")
        done.append("deleted its files")
    _note(record, request)
    return StopReport(record.name, record.host, tuple(done) or ("it was stopped already",))


# What is paused or could not be asked for ends only by `force`, and with all of its container.
def _refuse_unsure(ending: SessionEnding) -> None:
    found, selector, runtime = ending.found, ending.record.selector, ending.runtime
    if ending.request.force and ending.ends_all:
        return
    if found.container is not None and found.container.paused:
        ends = ending.command(container=True, remove=False, force=True)
        unpause = runtime.shown("unpause", found.container.called)
        hint = f"`{unpause}` on the host resumes it; `{ends}` ends it as it is"
        what = f"the container of `{selector}` is paused, so its Jupyter cannot be stopped"
        raise Busy(what, hint=hint)
    if found.unasked is not None:
        command = ending.command(force=True, container=runtime.has_containers)
        what = f"cannot ask `{selector}` for busy kernels and programs: {found.unasked}"
        raise Busy(what, hint=f"nothing was stopped; `{command}` ends all that runs there")


def _left(ending: SessionEnding) -> StopReport:
    record, request, owner = ending.record, ending.request, ending.found.whose
    if not record.shared or request.ends_container:
        how = "jlr does that for another user only by its name, with `--force`"
        hint = f"ask `{owner}` to stop it; {how}"
        raise JlrError(f"`{record.selector}` belongs to `{owner}`", hint=hint)
    released = _released(ending.host, record, forwarded=True)
    _note(record, request)
    left = f"left Jupyter running: it belongs to `{owner}`"
    return StopReport(record.name, record.host, (*released, left))


def _released(host: Link, record: SessionRecord, *, forwarded: bool) -> list[str]:
    ports = [record.local_port] if host.unforward(record.name) and forwarded else []
    ports += [each.local_port for each in record.ports if host.unforward(record.name, each.port)]
    return [f"released port {port}" for port in ports]


# The forwarded server ends, else the one that jlr launched; with its container any server ends.
def _server(ending: SessionEnding) -> Server | None:
    if ending.found.unasked is not None:
        return None  # all ends by force
    forwarded = ending.forward.server.identity if ending.forward else None
    likely = sorted(ending.found.servers, key=lambda server: server.identity != forwarded)
    with_it = ending.request.ends_container
    return next((s for s in likely if s.identity == forwarded or s.ours or with_it), None)


def _end_server(ending: SessionEnding, api: JupyterApi) -> str:
    host, runtime, name, server = ending.host, ending.runtime, ending.record.name, api.server
    if not ending.ends(server):
        return "left Jupyter running: jlr did not launch it (`--force` ends it)"
    patience = 0
    with suppress(JlrError):  # a signal ends it, too
        api.shut_down()
        patience = 10
    script = scripts.end(runtime, name, server.pid, server.process_start, patience=patience)
    ended = run_script(host, runtime.inside(name, script))
    if ended.status != 0 and losses.still_runs(host, runtime, name, ended.status):
        with_container = ending.command(container=True, remove=False, force=False)
        what = f"cannot stop Jupyter (process {server.pid}): {ended.complaint}"
        raise JlrError(what, hint=f"`{with_container}` stops its container")
    return "stopped JupyterLab"


def _end_container(
    host: Host, engine: Engine, container: Container, request: StopRequest, context: Context
) -> list[str]:
    goes = bool(container.options.remove)
    if request.remove:
        argv, verb, did = docker.remove_argv(engine, container.id), "rm", "removed the container"
    elif request.container:
        argv, verb, did = engine("stop", container.id), "stop", "stopped the container"
    else:
        return []
    command = engine.shown(verb, container.called)
    with context.progress.step(command):
        ending = docker.ended_script(engine, argv, container.id, goes=goes)
        mark = container.labels.get(START_LABEL, "") if container.is_session else ""
        if mark and (request.remove or goes):
            ending = f"(\n{ending}) || exit\n{networks.removal(engine, mark)}"
        if container.paused:  # old engines stop none that is
            ending = f"{command_line(engine('unpause', container.id))} >/dev/null 2>&1\n{ending}"
        ended = run_script(host, ending)
    if ended.status != 0:
        raise JlrError(f"`{command}` failed: {reason(ended)}")
    return [f"{did}, and it is gone (`--rm`)" if goes and not request.remove else did]


def _note(record: SessionRecord, request: StopRequest) -> None:
    browser.forget_redirect(record.local_port)
    sessions.save_stop(record.host, record.name)
    if request.remove:
        sessions.delete(record)
    else:
        sessions.save(replace(record, forwarded=False, ports=()))
