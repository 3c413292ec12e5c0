"""The recorder of a session whose server runs: look whether it runs, and run it again."""

from __future__ import annotations

from jlremote.host.contract import Host, run_script
from jlremote.host.records import records
from jlremote.jupyter import scripts
from jlremote.jupyter.server import Server
from jlremote.jupyter.survey import Survey
from jlremote.output import recorder
from jlremote.output.recorder import NOT_RECORDED, Recording
from jlremote.runtimes.contract import Runtime
from jlremote.runtimes.scripts import waiting
from jlremote.workflow.container.start_context import StartContext

ENDED = "its recorder has ended, so what cells print is not kept"


def ensure(start: StartContext, found: Survey, server: Server) -> None:
    """Record a running server unless that was refused; say so if the last recorder has ended."""
    now = found.findings.recording if found.findings else NOT_RECORDED
    if not start.request.record or now.state in ("on", "off"):
        return
    run(start.host, start.runtime, start.name, server)
    if now.state == "dead":
        start.note(
            f"the recorder of `{start.name}` had ended and was started again; what cells printed "
            "meanwhile is not kept"
        )


def run(host: Host, runtime: Runtime, name: str, server: Server) -> None:
    """Start the recorder beside a running server; of two the second one ends at once."""
    script = scripts.record(runtime, name, server.pid, server.called)
    if runtime.has_containers:
        script = waiting.beside(script)
    run_script(host, f"{runtime.detached(name, script)} >/dev/null")


def look(host: Host, runtime: Runtime, name: str) -> Recording:
    """Ask the host about a session's recorder."""
    script = runtime.on_machine(name, scripts.look_at_recorder(runtime, name))
    done = run_script(host, runtime.inside(name, script))
    return recorder.read(next(iter(records(done.stdout)), []))
