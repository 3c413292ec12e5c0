"""The recorder of a session whose server runs: look whether it runs, and run it again."""

from __future__ import annotations

from contextlib import suppress

from jlremote.errors import JlrError, Unreachable
from jlremote.hosts.context import Context
from jlremote.hosts.requests import StartContext
from jlremote.jupyter import recorder, scripts
from jlremote.jupyter.endpoint import Server
from jlremote.jupyter.recorder import Recording
from jlremote.jupyter.survey import survey
from jlremote.laptop.sessions import SessionRecord
from jlremote.place.host.contract import Host, records, run_script
from jlremote.place.runtimes import processes
from jlremote.place.runtimes.runtime import Runtime
from jlremote.place.runtimes.table import runtime_of

ENDED = "its recorder has ended, so what cells print is not kept: `jlr start` runs it again"


def ensure(start: StartContext, now: Recording, server: Server) -> None:
    """Record a running server unless that was refused; note that the last recorder has ended."""
    if not start.request.record or now.state in ("on", "off"):
        return
    _run(start.host, start.runtime, start.name, server)
    if now.state == "dead":
        start.note(_again(start.name))


def ensure_in_job(start: StartContext, server: Server) -> None:
    """Record a server on a cluster's node again if its recorder has ended."""
    with suppress(JlrError):  # what the node does not tell now is no reason to refuse the session
        now = recording_of(start.host, start.runtime, start.name)
        if now.state == "dead":
            ensure(start, now, server)


def revive(host: Host, record: SessionRecord, context: Context) -> bool | None:
    """Run an ended recorder again, with a note; return whether the server runs, `None`: unknown."""
    runtime = runtime_of(record)
    try:
        now = recording_of(host, runtime, record.name)
    except JlrError as failure:
        # A job's records can be read without its node.
        if isinstance(failure, Unreachable) or not runtime.in_jobs:
            raise
        return None
    if now.state != "dead" or not now.served:
        return now.served
    server = survey(host, runtime, record.name).server_on(record.server or None)
    if server is not None:
        _run(host, runtime, record.name, server)
        context.progress.note(_again(record.name))
    return True


def _again(name: str) -> str:
    gap = "what cells printed meanwhile is not kept"
    return f"the recorder of `{name}` had ended and was started again; {gap}"


# Of two recorders beside a server the second one ends at once.
def _run(host: Host, runtime: Runtime, name: str, server: Server) -> None:
    beside = recorder.beside(scripts.runtime_files(runtime), server.pid, server.called)
    script = runtime.as_launched(scripts.session_directory(runtime, name) + beside)
    if runtime.in_jobs:  # the way to the node stays open: what a step began ends with the step
        run_script(host, processes.detached((*runtime.relay_prefix(name), "sh", "-c", script)))
    else:
        run_script(host, f"{runtime.detached(name, script)} >/dev/null")


def recording_of(host: Host, runtime: Runtime, name: str) -> Recording:
    """Ask the host about a session's recorder."""
    script = runtime.on_machine(name, scripts.session_directory(runtime, name) + recorder.LOOK)
    done = run_script(host, runtime.inside(name, script))
    return recorder.read(next(iter(records(done.stdout)), []))
