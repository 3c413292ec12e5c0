"""The check whether a container gets the host's GPUs: a session's container, or a new one."""

from __future__ import annotations

from contextlib import ExitStack, suppress

from jlremote.doctor import toolkit
from jlremote.doctor.findings import Diagnosis, Judgement, from_error
from jlremote.errors import JlrError
from jlremote.host.contract import Completed, run_script
from jlremote.host.shell_text import command_line
from jlremote.runtimes.contract import ContainerSpec
from jlremote.runtimes.docker import docker_commands as docker
from jlremote.runtimes.docker.docker_errors import creation_error
from jlremote.runtimes.engine.engine import Engine
from jlremote.storage.sessions import SessionRecord
from jlremote.workflow.container import creation
from jlremote.workflow.doctor.trial import Trial
from jlremote.workflow.host.context import Context
from jlremote.workflow.host.halted import lost_gpus


def judge(trial: Trial, diagnosis: Diagnosis, name: str, context: Context) -> Judgement:
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


def _in_session(trial: Trial, record: SessionRecord) -> Judgement:
    done = run_script(trial.link, trial.runtime.inside(record.name, toolkit.PROOF))
    lost = lost_gpus(trial.link, record) if done.status != 0 else None
    if lost is not None:
        return from_error(lost)
    return toolkit.proved(trial.facts, f"`{record.name}`", done)


def _in_new_container(trial: Trial, image: str, name: str, context: Context) -> Judgement:
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
