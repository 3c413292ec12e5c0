"""The survey of a session: its container and the servers in it, in one round trip."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace

from jlremote.errors import Busy, JlrError, NotFound
from jlremote.jupyter import scripts
from jlremote.jupyter.discovery import Findings, read_probe
from jlremote.jupyter.endpoint import Server
from jlremote.place.host.contract import Host
from jlremote.place.runtimes.engine import engine_gpus
from jlremote.place.runtimes.on_node import IDLE, SHUT_DOWN, STOPPED
from jlremote.place.runtimes.runtime import KILLED, Container, Runtime
from jlremote.text import is_name, one_line


@dataclass(frozen=True)
class Survey:
    """The result of one round trip about a session."""

    container: Container | None  # the container, `None` if none has that name
    findings: Findings | None  # `None` if the container does not run, or the probe could not
    gpu_fault: JlrError | None = None  # why it has lost its GPUs, if that was checked
    called: tuple[str, ...] = ()  # containers whose label has the typed name, if none has the name
    owner: str | None = None  # the other user of the host who owns the container
    launched_by: str | None = None  # the other user who launched the server in a container of none
    user: str = ""  # the person's own name on the host, where it was asked for
    unasked: str | None = None  # why the probe could not run in a container that runs

    @property
    def whose(self) -> str | None:
        """The other user whose work the session is, `None` for one's own."""
        return self.owner or self.launched_by

    @property
    def servers(self) -> tuple[Server, ...]:
        """The servers that run in it, its own first; `Busy` if they could not be asked for."""
        if self.unasked is not None and self.container is not None:
            hint = "the engine runs no program in that container; what runs there goes on"
            why = f"cannot ask what runs in `{self.container.called}`: {self.unasked}"
            raise Busy(why, hint=hint)
        return self.findings.servers if self.findings else ()

    @property
    def server(self) -> Server | None:
        """The session's Jupyter server, or another one in its container."""
        return self.server_on(None)

    def server_on(self, port: int | None) -> Server | None:
        """Return the server on a port, else the session's own, else any other, `None` for none."""
        return min(self.servers, key=lambda server: server.port != port, default=None)


def survey(
    host: Host, runtime: Runtime, name: str, *, typed: str | None = None, check_gpus: bool = False
) -> Survey:
    """Survey a session in one round trip.

    `typed` is looked for in the containers' labels if no container has the name. Where the probe
    could not run, the container may just have ended, which an engine under load reports later; so
    there is a second look.
    """
    began, looks = time.monotonic(), 0
    while True:
        surveyed, status = _looked(host, runtime, name, typed, check_gpus=check_gpus)
        looks += 1
        patience = NOTICED_SECONDS if status == KILLED else 0.0
        if surveyed.unasked is None or (looks > 1 and time.monotonic() - began >= patience):
            return surveyed
        time.sleep(_LOOK_PAUSE_SECONDS)


def _looked(
    host: Host, runtime: Runtime, name: str, typed: str | None, *, check_gpus: bool
) -> tuple[Survey, int]:
    inside = scripts.probe(runtime, name)
    if check_gpus and runtime.has_containers:
        inside += engine_gpus.FAULT_CHECK
    results = host.run(runtime.survey(name, inside, typed))
    container = runtime.read(name, results)
    user = results["user"].stdout.strip() if "user" in results else ""
    owner = None if container is None else container.owner_beside(user)
    about = Survey(container, None, owner=owner, user=user)
    if container is None and "called" in results:
        called = filter(is_name, results["called"].stdout.split())
        return replace(about, called=tuple(called)), 0
    probed = results["inside"]
    if container is None or not container.running:
        return about, 0
    if probed.status != 0:
        why = one_line(probed.complaint) or f"the probe ended with status {probed.status}"
        if container.restarts:
            log = runtime.shown("logs", container.called)
            why = (
                f"its engine has restarted it {container.restarts} times; `{log}` on the host may "
                f"say why: {why}"
            )
        return replace(about, unasked=why), probed.status
    findings = read_probe(probed.stdout)
    if not findings.directory:
        printed = one_line(probed.stdout.strip())
        why = f"the probe printed only `{printed[:80]}`" if printed else "the probe printed nothing"
        return replace(about, unasked=why), 0
    fault = engine_gpus.gpu_fault(probed.stdout, name, runtime.shown("restart", name))
    launched = not container.labelled_user and any(server.ours for server in findings.servers)
    launcher = findings.launcher if launched and findings.launcher not in ("", user) else None
    return replace(about, findings=findings, gpu_fault=fault, launched_by=launcher), 0


NOTICED_SECONDS = 10.0  # an engine under load reports a container's end so much later
_LOOK_PAUSE_SECONDS = 0.2


def refuse_halted(host: str, name: str, runtime: Runtime, container: Container | None) -> Container:
    """Return the container of a session, or raise an error with its `state` if it does not run."""
    again = f"`jlr start {host} {name}` starts it again"
    if container is None:
        removed = f"the container `{name}` is gone: it was removed"
        raise NotFound(removed, hint=again, state="container-gone")
    called = f"the container `{container.called}`"
    if container.paused:
        hint = f"`{runtime.shown('unpause', container.called)}` on the host resumes it"
        raise NotFound(f"{called} is paused", hint=hint, state="paused")
    refuse_without_job(host, name, container)
    if container.restarting:
        hint = f"`jlr logs {host}/{name} --container` has what it wrote before it ended"
        raise NotFound(f"{called} {container.stands}", hint=hint, state="restarting")
    if not container.running:
        raise NotFound(f"{called} {container.stands}", hint=again, state="container-stopped")
    return container


def refuse_without_job(host: str, name: str, container: Container) -> None:
    """Raise an error with the `state` of a session that is to be a job while that does not run."""
    if container.waits:
        waits = f"the job {container.job or ''} of `{name}` waits in the queue".replace("  ", " ")
        hint = f"`jlr start {host} {name}` waits for it and says why it waits"
        raise JlrError(waits, hint=hint, state="queued")
    if container.in_job and not container.running:
        ends = {STOPPED: "stopped", SHUT_DOWN: "stopped", IDLE: "idle-stopped"}
        state = ends.get(container.halt, "job-ended")
        raise JlrError(f"`{name}` {container.stands}", hint=anew(host, name), state=state)


def anew(host: str, name: str) -> str:
    """Return the hint for a session whose job is over."""
    return (
        f"`jlr restart {host}/{name}` submits another with what it asked for, "
        f"`jlr start {host} {name} --slurm …` one with other options"
    )


def gone(host: str, container: Container, findings: Findings | None, which: str = "") -> JlrError:
    """Return the error for a session of `host` without a server: stopped, idle, or gone.

    `findings` is `None` if jlr did not launch the server; `which` are words that describe it.
    """
    name = container.name
    if container.starts:
        starts = f"Jupyter is starting in the job {container.job} of `{name}`"
        return JlrError(starts, hint=f"`jlr start {host} {name}` waits for it", state="starting")
    again = f"`jlr start {host} {name}` starts it again"
    if findings and findings.ended == "idle":
        why = f"Jupyter in `{name}` has ended after its idle time"
        return JlrError(why, hint=again, state="idle-stopped")
    if findings and (findings.ended == "stopped" or findings.exit_status == 0):
        why = f"Jupyter in `{name}` was stopped, from its page or with `jlr stop`"
        return JlrError(why, hint=again, state="stopped")
    killed = findings is not None and findings.exit_status == KILLED
    why = f"was {container.out_of_memory or 'killed'}" if killed else "is gone"
    hint = f"{again}; `jlr logs {host}/{name}` has its log"
    return JlrError(f"the Jupyter server of `{name}`{which} {why}", hint=hint, state="jupyter-dead")
