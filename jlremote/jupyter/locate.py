"""The survey of a session: its container, and what runs in it, in one round trip."""

from __future__ import annotations

from dataclasses import dataclass

from jlremote.errors import JlrError
from jlremote.gpus import lost
from jlremote.gpus.snapshot_script import MINE
from jlremote.host.contract import Host
from jlremote.host.shell_text import command_line
from jlremote.jupyter import scripts
from jlremote.jupyter.discovery import Findings, read_probe
from jlremote.jupyter.server import Server
from jlremote.runtimes.contract import TYPED_LABEL, Container, Runtime
from jlremote.runtimes.engine.engine import Engine


class ContainerGone(JlrError):
    """The container of a session does not exist, does not run, or is another one."""


class JupyterDead(JlrError):
    """The container is there, and the session's Jupyter server is not."""


class JupyterStopped(JlrError):
    """Somebody has stopped the session, perhaps from another laptop."""


class IdleStopped(JlrError):
    """The session's Jupyter server has ended by itself, as there was no work for so long."""


@dataclass(frozen=True)
class Survey:
    """All that one round trip tells about a session.

    Attributes:
        container: the container, `None` if there is none of that name.
        findings: what runs in it, `None` if nothing could be run in it.
        gpu_fault: what keeps it from its GPUs, where that was to be checked.
        called: the names of the containers that their owner calls so, where there is none.
    """

    container: Container | None
    findings: Findings | None
    gpu_fault: lost.Fault | None = None
    called: tuple[str, ...] = ()

    @property
    def servers(self) -> tuple[Server, ...]:
        """The Jupyter servers that run in it, the session's own first."""
        return self.findings.servers if self.findings else ()

    @property
    def server(self) -> Server | None:
        """The session's Jupyter server, or another one in its container; `None` for none."""
        return next(iter(self.servers), None)


def survey(
    host: Host,
    runtime: Runtime,
    name: str,
    *,
    typed: str | None = None,
    check_gpus: bool = False,
) -> Survey:
    """Ask the host all about `name`, in one round trip.

    Args:
        host: where.
        runtime: in what.
        name: the session's name.
        typed: what a person calls it, and perhaps another container if there is none of that name.
        check_gpus: whether a container that was given GPUs is asked for them.
    """
    inside = scripts.probe(runtime, name)
    if check_gpus and runtime.has_containers:
        inside += lost.CHECK
    steps = dict(runtime.survey(name, inside))
    if typed is not None and runtime.engine is not None:
        steps["called"] = _called(runtime.engine, typed)
    results = host.run(steps)
    container = runtime.read(name, results)
    if container is None and "called" in results:
        return Survey(None, None, called=tuple(results["called"].stdout.split()))
    probed = results["inside"]
    reachable = container is not None and container.running and probed.status == 0
    if not reachable:
        return Survey(container, None)
    restart = "" if runtime.engine is None else runtime.engine.shown("restart", name)
    fault = lost.read(probed.stdout, name, restart)
    return Survey(container, read_probe(probed.stdout), fault)


def _called(engine: Engine, typed: str) -> str:
    """Return the step that prints the person's containers of that short name.

    Nothing can have been run in a container that is not there; else the question is idle.
    """
    names = engine("ps", "--all", "--format={{.Names}}", f"--filter=label={TYPED_LABEL}={typed}")
    return f'[ "$status" = 0 ] || {command_line(names)} {MINE}'


def gone(name: str, findings: Findings | None, which: str = "") -> JlrError:
    """Return why a session has no server: it was stopped, it ended by itself, or nobody knows.

    Args:
        name: the session's name.
        findings: what its folder tells, `None` if the server was not launched by jlr.
        which: words that tell it from others.
    """
    again = f"start it again: `jlr start HOST {name}`"
    if findings and findings.ended == "idle":
        why = f"Jupyter in `{name}` has ended by itself, as nothing worked for so long (idle stop)"
        return IdleStopped(why, hint=again)
    if findings and (findings.ended == "stopped" or findings.exit_status == 0):
        why = f"somebody has stopped Jupyter in `{name}`, from its page or with `jlr stop`"
        return JupyterStopped(why, hint=again)
    return JupyterDead(
        f"the Jupyter server of `{name}`{which} is gone",
        hint=f"{again}; `jlr logs {name}` has its log",
    )
