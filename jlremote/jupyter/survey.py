"""The survey of a session: its container and the servers in it, in one round trip."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from jlremote.errors import Busy, JlrError, NotFound
from jlremote.jupyter import scripts
from jlremote.jupyter.discovery import Findings, read_probe
from jlremote.jupyter.endpoint import Server
from jlremote.place.host.contract import Host
from jlremote.place.runtimes.engine import engine_gpus
from jlremote.place.runtimes.on_node import IDLE, SHUT_DOWN, STOPPED
from jlremote.place.runtimes.runtime import KILLED, Container, Runtime
from jlremote.text import is_name, one_line


class ContainerGone(NotFound):
    """The container of a session was removed or replaced."""

    state = "container-gone"


class ContainerStopped(NotFound):
    """The container of a session does not run."""

    state = "container-stopped"


class ContainerPaused(NotFound):
    """The container of a session is paused, by hand or for as long as `jlr image save` takes."""

    state = "paused"


class ContainerRestarting(NotFound):
    """The engine is about to start the container of a session again."""

    state = "restarting"


class ContainerRestarted(JlrError):
    """The container of a session runs anew, and what ran in it before has ended."""

    state = "restarted"


class JupyterDead(JlrError):
    """The container runs, and the session's Jupyter server does not."""

    state = "jupyter-dead"


class JupyterStopped(JlrError):
    """The session was stopped, perhaps from another laptop."""

    state = "stopped"


class JobWaits(JlrError):
    """The session's job waits in a scheduler's queue."""

    state = "queued"


class JobStarts(JlrError):
    """The session's job runs, and Jupyter does not listen in it yet."""

    state = "starting"


class JobEnded(JlrError):
    """The session's job has ended, or there is none."""

    state = "job-ended"


class IdleStopped(JlrError):
    """The session's Jupyter server has ended by itself after its idle time."""

    state = "idle-stopped"


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
            called = self.container.called
            raise Busy(
                f"cannot ask what runs in `{called}`: {self.unasked}",
                hint="the engine runs no program in that container; what runs there goes on",
            )
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
    if container is None and "called" in results:
        called = tuple(filter(is_name, results["called"].stdout.split()))
        return Survey(None, None, called=called, user=user), 0
    probed = results["inside"]
    if container is None or not container.running:
        return Survey(container, None, owner=owner, user=user), 0
    if probed.status != 0:
        why = one_line(probed.complaint) or f"the probe ended with status {probed.status}"
        if container.restarts:
            log = runtime.shown("logs", container.called)
            why = (
                f"its engine has restarted it {container.restarts} times; `{log}` on the host may "
                f"say why: {why}"
            )
        return Survey(container, None, owner=owner, user=user, unasked=why), probed.status
    findings = read_probe(probed.stdout)
    if not findings.whole:
        printed = one_line(probed.stdout.strip())
        why = f"the probe printed only `{printed[:80]}`" if printed else "the probe printed nothing"
        return Survey(container, None, owner=owner, user=user, unasked=why), 0
    fault = engine_gpus.gpu_fault(probed.stdout, name, runtime.shown("restart", name))
    launcher = _other_launcher(container, findings, user)
    whole = Survey(container, findings, fault, owner=owner, launched_by=launcher, user=user)
    return whole, 0


NOTICED_SECONDS = 10.0  # an engine under load reports a container's end so much later
_LOOK_PAUSE_SECONDS = 0.2


def _other_launcher(container: Container, findings: Findings, user: str) -> str | None:
    if container.labelled_user or not any(server.ours for server in findings.servers):
        return None
    return findings.launcher if findings.launcher not in ("", user) else None


def refuse_halted(host: str, name: str, runtime: Runtime, container: Container | None) -> Container:
    """Return the container of the session `name` of `host`, which must run.

    Raises:
        ContainerGone, ContainerPaused, ContainerRestarting, ContainerStopped: it does not.
        JlrError: as of `refuse_without_job`.
    """
    again = f"`jlr start {host} {name}` starts it again"
    if container is None:
        raise ContainerGone(f"the container `{name}` is gone: it was removed", hint=again)
    if container.paused:
        unpause = runtime.shown("unpause", container.called)
        raise ContainerPaused(
            f"the container `{container.called}` is paused",
            hint=f"`{unpause}` on the host resumes it",
        )
    refuse_without_job(host, name, container)
    if container.restarting:
        raise ContainerRestarting(
            f"the container `{container.called}` {container.stands}",
            hint=f"`jlr logs {host}/{name} --container` has what it wrote before it ended",
        )
    if not container.running:
        raise ContainerStopped(f"the container `{container.called}` {container.stands}", hint=again)
    return container


def refuse_without_job(host: str, name: str, container: Container) -> None:
    """Refuse a session that is to be a job, while that does not run.

    Raises:
        JobWaits, JobEnded: it waits, or has ended, or was never submitted.
        JupyterStopped, IdleStopped: it was stopped, by a person or as nothing was done in it.
    """
    if container.waits:
        raise JobWaits(
            f"the job {container.job or ''} of `{name}` waits in the queue".replace("  ", " "),
            hint=f"`jlr start {host} {name}` waits for it and says why it waits",
        )
    if container.in_job and not container.running:
        kind = _ENDS.get(container.halt, JobEnded)
        raise kind(f"`{name}` {container.stands}", hint=anew(host, name))


_ENDS: Mapping[str, type[JlrError]] = MappingProxyType(
    {STOPPED: JupyterStopped, SHUT_DOWN: JupyterStopped, IDLE: IdleStopped}
)


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
        return JobStarts(
            f"Jupyter is starting in the job {container.job} of `{name}`",
            hint=f"`jlr start {host} {name}` waits for it",
        )
    again = f"`jlr start {host} {name}` starts it again"
    if findings and findings.ended == "idle":
        why = f"Jupyter in `{name}` has ended after its idle time"
        return IdleStopped(why, hint=again)
    if findings and (findings.ended == "stopped" or findings.exit_status == 0):
        why = f"Jupyter in `{name}` was stopped, from its page or with `jlr stop`"
        return JupyterStopped(why, hint=again)
    killed = findings is not None and findings.exit_status == KILLED
    why = "was killed" if killed else "is gone"
    if killed and container.out_of_memory:
        why = f"was {container.out_of_memory}"
    return JupyterDead(
        f"the Jupyter server of `{name}`{which} {why}",
        hint=f"{again}; `jlr logs {host}/{name}` has its log",
    )
