"""The session or new container of the last checks, and the check that containers get GPUs."""

from __future__ import annotations

from contextlib import ExitStack, suppress
from dataclasses import dataclass

from jlremote.containers import new_container
from jlremote.doctor.diagnosis import Diagnosis, Finding, fail, fine, from_error, skip, warn
from jlremote.doctor.host_facts import WITHOUT_CONTAINERS, HostFacts
from jlremote.errors import JlrError
from jlremote.gpus.snapshot import NvidiaSmiSilent
from jlremote.hosts.context import Context
from jlremote.hosts.halted import gpu_fault
from jlremote.hosts.requests import StartRequest
from jlremote.jupyter.survey import Survey
from jlremote.laptop.sessions import SessionRecord
from jlremote.link.client.link import Link
from jlremote.place.host import installation
from jlremote.place.host.contract import Completed, run_script
from jlremote.place.host.shell_text import command_line
from jlremote.place.runtimes.docker import docker_commands as docker
from jlremote.place.runtimes.docker.docker_errors import creation_error
from jlremote.place.runtimes.engine.engine_gpus import mend
from jlremote.place.runtimes.engine.kinds import Engine
from jlremote.place.runtimes.runtime import ContainerSpec, Runtime
from jlremote.text import one_line

_DESCRIBE_DEVICES = "sudo nvidia-ctk cdi generate --output=/etc/cdi/nvidia.yaml"
# The toolkit brings `nvidia-smi` into a container along with the devices.
_PROOF = "nvidia-smi -L"
_NO_UTILITY = (
    "`-e NVIDIA_DRIVER_CAPABILITIES=compute,utility` gives it to a container whose image asks for "
    "less"
)
NOTHING = Survey(None, None)
# In the path of each specification of the Container Device Interface.
_CDI_FOLDER = "/cdi/"


@dataclass(frozen=True)
class Trial:
    """The session that runs, or the new container, on which the end of the chain is tried."""

    link: Link
    facts: HostFacts
    runtime: Runtime
    record: SessionRecord | None  # of a session that runs, which is left as it is
    found: Survey  # what runs there
    request: StartRequest  # for a new container, maybe without image


def judge_gpus(trial: Trial, diagnosis: Diagnosis, name: str, context: Context) -> Finding:
    """Try `nvidia-smi` in the session's container, or in a new one, `name` (or `JlrError`)."""
    facts, record, container = trial.facts, trial.record, trial.found.container
    if not facts.has_gpus or not facts.has_containers:
        return unproved(facts)
    if record is not None and container is not None and container.gpus:
        done = run_script(trial.link, trial.runtime.inside(record.name, _PROOF))
        lost = gpu_fault(trial.link, record) if done.status != 0 else None
        return proved(facts, f"`{record.name}`", done) if lost is None else from_error(lost)
    if facts.image is None or not diagnosis.well("image", "disk"):
        return unproved(facts)
    return _in_new_container(trial, facts.image, name, context)


def _in_new_container(trial: Trial, image: str, name: str, context: Context) -> Finding:
    engine = trial.facts.required_engine
    # Without its entrypoint, which could end the container at once; only the engine is checked.
    options = trial.request.options
    spec = ContainerSpec(name, image, options=options, gpus="all", own_entrypoint=False)
    with ExitStack() as undo:
        undo.callback(_remove, trial, name, context)
        by, spec, done = new_container.attempted(
            engine, spec, trial.request, context, lambda by, spec: _begun(trial, by, spec)
        )
        if done.status == 0:
            another = f" by {by.name}" if by.name != engine.name else ""
            where = f"a new container of {image}{another}"
            done = run_script(trial.link, trial.runtime.inside(name, _PROOF))
            return proved(trial.facts, where, done)
    error = creation_error(by, spec, done, trial.link.name)
    if "no GPUs" in error.message:
        return refused(trial.facts, error.message)
    return from_error(error)


def _begun(trial: Trial, by: Engine, spec: ContainerSpec) -> Completed:
    create, start, remove = (
        command_line(argv)
        for argv in (
            docker.create_argv(by, spec),
            by("start", spec.name),
            docker.remove_argv(by, spec.name),
        )
    )
    begin = f"{start} >/dev/null || {{ {remove} >/dev/null; exit 1; }}"
    ends_if_missing = new_container.unless_missing(by, spec.image)
    return run_script(trial.link, f"{ends_if_missing}{create} >/dev/null || exit\n{begin}")


def _remove(trial: Trial, name: str, context: Context) -> None:
    engine = trial.facts.required_engine
    with suppress(JlrError):
        done = run_script(trial.link, command_line(docker.remove_argv(engine, name)))
        if done.status == 0 or "no such container" in done.stderr.lower():
            return
    context.progress.note(f"left behind on `{trial.link.name}`: the container `{name}`")


def unproved(facts: HostFacts) -> Finding:
    """Judge the toolkit without a container to prove it in."""
    if not facts.has_containers:
        return WITHOUT_CONTAINERS
    if isinstance(facts.gpus, NvidiaSmiSilent):
        return skip("it is not known whether there are GPUs to give to containers")
    if not facts.has_gpus:
        return skip("no GPUs to give to containers")
    programs = [path for path in facts.toolkit if _CDI_FOLDER not in path]
    engine, usable = facts.required_engine, _for_its_engine(facts)
    if engine.kind.gpus == "devices" and programs and not usable:
        return fail(
            f"NVIDIA's container toolkit is installed ({programs[0]}), but no file describes the "
            f"GPUs, which {engine.name} needs to give them to containers",
            _DESCRIBE_DEVICES,
        )
    if not usable:
        message = "NVIDIA's container toolkit is not installed: containers get no GPUs"
        return fail(message, *_ways(facts, install=True))
    what = f"installed ({usable[0]}), but not tried"
    return warn(what, f"`jlr doctor {facts.host} --image IMAGE` runs `nvidia-smi` in a container")


def proved(facts: HostFacts, where: str, done: Completed) -> Finding:
    """Judge the toolkit by the result of `nvidia-smi` in the container that `where` names."""
    if done.status == 0:
        gpus = sum(line.startswith("GPU ") for line in done.stdout.splitlines())
        return fine(f"`nvidia-smi` in {where}: {gpus} GPU{'' if gpus == 1 else 's'}")
    said = one_line(done.stderr) or one_line(done.stdout) or f"exit status {done.status}"
    text = f"containers get no GPUs: `nvidia-smi` in {where} says {said}"
    if _for_its_engine(facts) and "not found" in said:
        return fail(text, _NO_UTILITY)
    return refused(facts, text)


def _for_its_engine(facts: HostFacts) -> list[str]:
    described = facts.required_engine.kind.gpus == "devices"
    return [path for path in facts.toolkit if (_CDI_FOLDER in path) == described]


def refused(facts: HostFacts, reason: str) -> Finding:
    """Return the finding that the engine gives containers no GPUs, with its reason."""
    if (mended := mend(reason)) is not None:
        return fail(reason, mended)
    return fail(reason, *_ways(facts, install=not facts.toolkit))


def _ways(facts: HostFacts, *, install: bool) -> tuple[str, ...]:
    """Return the commands that make the toolkit known to the engine, and before, install it."""
    daemon = facts.required_engine.kind.daemon
    first = installation.commands("nvidia-container-toolkit", facts.distribution)
    make_known = [_DESCRIBE_DEVICES]
    if daemon is not None:
        make_known = [
            f"sudo nvidia-ctk runtime configure --runtime={daemon}",
            f"sudo systemctl restart {daemon}   # ends the containers that run",
        ]
    return (*(first if install else ()), *make_known)
