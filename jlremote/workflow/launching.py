"""The Jupyter server of a session: reuse the one that runs, or launch one."""

from __future__ import annotations

from contextlib import suppress

from jlremote.errors import JlrError, NotFound
from jlremote.host.shell import Host, run_script
from jlremote.jupyter import scripts
from jlremote.jupyter.discovery import Findings, read_probe
from jlremote.jupyter.locate import Survey
from jlremote.jupyter.server import Server
from jlremote.runtimes.contract import Runtime
from jlremote.text import printable
from jlremote.workflow.requests import StartRequest
from jlremote.workflow.undertaking import Undertaking

LOG_LINES = 10
COMMAND_NOT_FOUND = 127


def ensure(start: Undertaking, found: Survey) -> tuple[Server, bool]:
    """Return a server that runs, and whether it was launched just now.

    Raises:
        NotFound: there is no JupyterLab to launch.
        JlrError: it ended at once, or did not start in time; with the last lines of its log.
    """
    if found.findings is not None and found.findings.servers:
        return found.findings.servers[0], False
    if found.findings is not None and not found.findings.jupyter and start.runtime.engine:
        raise _missing(start)
    with start.context.progress.step("Launch JupyterLab"):
        return _launch(start), True


def script(request: StartRequest, runtime: Runtime, name: str) -> str:
    """Return the shell command that launches JupyterLab on the host, without waiting for it."""
    jupyter = scripts.ON_PATH
    if request.python is not None:
        jupyter = scripts.with_python(request.python)
    elif request.conda_env is not None:
        jupyter = scripts.with_conda(request.conda_env)
    launch = scripts.launch(
        name, engine=runtime.engine, bind_address=runtime.bind_address, jupyter=jupyter
    )
    return runtime.detached(name, launch)


def _launch(start: Undertaking) -> Server:
    """Launch the server and wait, on the host, until it has said where it listens."""
    runtime, name = start.runtime, start.name
    waiting = scripts.wait_and_probe(name, engine=runtime.engine)
    start.undo.callback(_abandon, start)
    results = start.host.run(
        {
            "launch": script(start.request, runtime, name),
            "server": runtime.inside(name, waiting),
        },
        timeout=scripts.WAIT_SECONDS + 30.0,
    )
    findings = read_probe(results["server"].stdout)
    for server in findings.servers:
        if server.ours:
            return server
    raise _failed(start, findings)


def _abandon(start: Undertaking) -> None:
    """End a server that was launched by this call and cannot be used."""
    with suppress(JlrError):
        ending = scripts.abandon(start.name, engine=start.runtime.engine)
        run_script(start.host, start.runtime.inside(start.name, ending))


def _failed(start: Undertaking, findings: Findings) -> JlrError:
    status = findings.exit_status
    log = log_tail(start.host, start.runtime, start.name)
    if status == COMMAND_NOT_FOUND or "No module named jupyterlab" in log:
        return _missing(start)
    happened = (
        f"JupyterLab did not start within {scripts.WAIT_SECONDS} s"
        if status is None
        else f"JupyterLab ended at once with exit status {status}"
    )
    last = f"; the last lines of its log:\n{log}" if log else ", and its log is empty"
    return JlrError(
        f"{happened}{last}",
        hint=f"try it by hand on `{start.request.host}`: `{_by_hand(start)}`",
    )


def _by_hand(start: Undertaking) -> str:
    if start.runtime.engine:
        return f"{start.runtime.name} exec -it {start.name} jupyter lab --ip=0.0.0.0"
    return "jupyter lab"


def _missing(start: Undertaking) -> NotFound:
    where = f"the container `{start.name}`" if start.runtime.engine else f"`{start.request.host}`"
    install = "python3 -m pip install jupyterlab"
    if start.runtime.engine:
        install = f"{start.runtime.name} exec {start.name} {install}"
    return NotFound(
        f"there is no JupyterLab in {where}",
        hint=f"install it there: `{install}`; or choose an image that has it",
    )


def log_tail(host: Host, runtime: Runtime, name: str, lines: int = LOG_LINES) -> str:
    """Return the last lines of the server's log, fit to be shown; empty if there is none."""
    show = scripts.show_log(name, engine=runtime.engine, lines=lines)
    return printable(run_script(host, runtime.inside(name, show)).stdout).strip()
