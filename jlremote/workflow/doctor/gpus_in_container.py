"""Does a container get the host's GPUs? It is tried in a session's, or in a new one."""

from __future__ import annotations

from contextlib import ExitStack, suppress

from jlremote.doctor import toolkit
from jlremote.doctor.findings import Diagnosis, Opinion, of_error
from jlremote.errors import JlrError
from jlremote.host.contract import Completed, run_script
from jlremote.host.shell_text import command_line
from jlremote.runtimes.contract import ContainerSpec
from jlremote.runtimes.docker import docker_commands as docker
from jlremote.runtimes.docker.docker_errors import creation_error
from jlremote.runtimes.engine.engine import Engine
from jlremote.storage.sessions import SessionRecord
from jlremote.workflow.container import creation, old_docker
from jlremote.workflow.doctor.subject import Subject
from jlremote.workflow.host import gpus
from jlremote.workflow.host.context import Context


def judge(subject: Subject, diagnosis: Diagnosis, name: str, context: Context) -> Opinion:
    """Try it where it can be tried.

    Args:
        subject: what the end of the chain is tried on.
        diagnosis: what was found before.
        name: that of a container, if one has to be made; it is removed again.
        context: the laptop's side.

    Raises:
        JlrError: the host cannot be asked.
    """
    facts, here = subject.facts, subject.running
    if not toolkit.has_gpus(facts) or facts.engine is None:
        return toolkit.unproved(facts)
    if here is not None and here.container.gpus:
        return _in_session(subject, here.record)
    if facts.image is None or not diagnosis.well("image", "architecture", "disk"):
        return toolkit.unproved(facts)
    return _in_new_container(subject, facts.image.name, name, context)


def _in_session(subject: Subject, record: SessionRecord) -> Opinion:
    done = run_script(subject.link, subject.runtime.inside(record.name, toolkit.PROOF))
    lost = gpus.fault(subject.link, record) if done.status != 0 else None
    if lost is not None:
        return of_error(JlrError(lost.why, hint=lost.mend))
    return toolkit.proved(subject.facts, f"`{record.name}`", done)


def _in_new_container(subject: Subject, image: str, name: str, context: Context) -> Opinion:
    engine = subject.facts.engine
    assert engine is not None
    # What is to be proved is the engine's part; an entrypoint may end the container at once.
    spec = ContainerSpec(name, image, gpus="all", own_entrypoint=False)
    with ExitStack() as undo:
        undo.callback(_remove, subject, name, context)
        by, done = old_docker.attempted(
            engine, subject.request, context, lambda by: _begun(subject, by, spec)
        )
        if done.status == 0:
            another = f" by {by.name}" if by.name != engine.name else ""
            where = f"a new container of {image}{another}"
            done = run_script(subject.link, subject.runtime.inside(name, toolkit.PROOF))
            return toolkit.proved(subject.facts, where, done)
    error = creation_error(by, spec, done)
    if "no GPUs" in error.message:
        return toolkit.refused(subject.facts, error.message)
    return of_error(error)


def _begun(subject: Subject, by: Engine, spec: ContainerSpec) -> Completed:
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
    return run_script(subject.link, f"{there}{create} >/dev/null || exit\n{begin}")


def _remove(subject: Subject, name: str, context: Context) -> None:
    engine = subject.facts.engine
    assert engine is not None
    with suppress(JlrError):
        done = run_script(subject.link, command_line(docker.remove_argv(engine, name)))
        if done.status == 0 or "no such container" in done.stderr.lower():
            return
    context.progress.note(f"left behind on `{subject.link.name}`: the container `{name}`")
