"""The session or new container on which `jlr doctor` tries the end of the chain, and its GPUs."""

from __future__ import annotations

from contextlib import ExitStack, suppress
from dataclasses import dataclass

from jlremote.containers import creation
from jlremote.doctor import toolkit
from jlremote.doctor.findings import Diagnosis, Finding, from_error
from jlremote.doctor.host_facts import HostFacts
from jlremote.errors import JlrError
from jlremote.hosts.context import Context
from jlremote.hosts.halted import gpu_fault
from jlremote.hosts.requests import StartRequest
from jlremote.jupyter.server import Server
from jlremote.jupyter.survey import survey
from jlremote.laptop.sessions import SessionRecord
from jlremote.link.client.link import Link
from jlremote.place.host.contract import Completed, run_script
from jlremote.place.host.shell_text import command_line
from jlremote.place.runtimes.docker import docker_commands as docker
from jlremote.place.runtimes.docker.docker_errors import creation_error
from jlremote.place.runtimes.engine.kinds import Engine
from jlremote.place.runtimes.runtime import Container, ContainerSpec, Runtime
from jlremote.place.runtimes.table import runtime_of


@dataclass(frozen=True)
class RunningSession:
    """A session that runs; it is examined and left as it is."""

    record: SessionRecord
    container: Container
    server: Server


def running(link: Link, record: SessionRecord) -> RunningSession | None:
    """Return a session of this laptop that runs, `None` if it does not or cannot be asked."""
    with suppress(JlrError):  # the checks of the engine report it
        found = survey(link, runtime_of(record), record.name)
        if found.container is not None and found.server is not None:
            return RunningSession(record, found.container, found.server)
    return None


@dataclass(frozen=True)
class Trial:
    """The session or new container on which the end of the chain is tried.

    `running` is a session that runs there; `request` is that for a new one, maybe without image.
    """

    link: Link
    facts: HostFacts
    runtime: Runtime
    running: RunningSession | None
    request: StartRequest

    @property
    def ready(self) -> tuple[str, ...]:
        """The checks that must have passed before a container can be tried."""
        if not self.runtime.has_containers:
            return ("shell",)
        if self.running is not None or self.request.image is None:
            return ("permission",)
        return ("permission", "disk", "image", "architecture")


def judge_gpus(trial: Trial, diagnosis: Diagnosis, name: str, context: Context) -> Finding:
    """Try `nvidia-smi` in the session's container, or in a new one called `name`.

    Raises:
        JlrError: the host cannot be asked.
    """
    facts, here = trial.facts, trial.running
    if not toolkit.has_gpus(facts) or not facts.has_containers:
        return toolkit.unproved(facts)
    if here is not None and here.container.gpus:
        return _in_session(trial, here.record)
    if facts.image is None or not diagnosis.well("image", "architecture", "disk"):
        return toolkit.unproved(facts)
    return _in_new_container(trial, facts.image.name, name, context)


def _in_session(trial: Trial, record: SessionRecord) -> Finding:
    done = run_script(trial.link, trial.runtime.inside(record.name, toolkit.PROOF))
    lost = gpu_fault(trial.link, record) if done.status != 0 else None
    if lost is not None:
        return from_error(lost)
    return toolkit.proved(trial.facts, f"`{record.name}`", done)


def _in_new_container(trial: Trial, image: str, name: str, context: Context) -> Finding:
    engine = trial.facts.required_engine
    # Without its entrypoint, which could end the container at once; only the engine is checked.
    spec = ContainerSpec(name, image, gpus="all", own_entrypoint=False)
    with ExitStack() as undo:
        undo.callback(_remove, trial, name, context)
        by, spec, done = creation.attempted(
            engine, spec, trial.request, context, lambda by, spec: _begun(trial, by, spec)
        )
        if done.status == 0:
            another = f" by {by.name}" if by.name != engine.name else ""
            where = f"a new container of {image}{another}"
            done = run_script(trial.link, trial.runtime.inside(name, toolkit.PROOF))
            return toolkit.proved(trial.facts, where, done)
    error = creation_error(by, spec, done)
    if "no GPUs" in error.message:
        return toolkit.refused(trial.facts, error.message)
    return from_error(error)


def _begun(trial: Trial, by: Engine, spec: ContainerSpec) -> Completed:
    create, start, remove = (
        command_line(argv)
        for argv in (
            docker.create_argv(by, spec),
            docker.start_argv(by, spec.name),
            docker.remove_argv(by, spec.name),
        )
    )
    begin = f"{start} >/dev/null || {{ {remove} >/dev/null; exit 1; }}"
    there = creation.unless_missing(by, spec.image)
    return run_script(trial.link, f"{there}{create} >/dev/null || exit\n{begin}")


def _remove(trial: Trial, name: str, context: Context) -> None:
    engine = trial.facts.required_engine
    with suppress(JlrError):
        done = run_script(trial.link, command_line(docker.remove_argv(engine, name)))
        if done.status == 0 or "no such container" in done.stderr.lower():
            return
    context.progress.note(f"left behind on `{trial.link.name}`: the container `{name}`")
