"""The check of NVIDIA's container toolkit: whether containers get the host's GPUs."""

from __future__ import annotations

from jlremote.doctor.findings import WITHOUT_CONTAINERS, Finding, fail, fine, skip, warn
from jlremote.doctor.host_facts import HostFacts
from jlremote.gpus.inventory import Inventory
from jlremote.gpus.snapshot import NvidiaSmiSilent
from jlremote.place.host import installation
from jlremote.place.host.contract import Completed
from jlremote.place.runtimes.engine.engine_gpus import mend
from jlremote.place.runtimes.engine.kinds import Engine
from jlremote.text import one_line

CHECK = "toolkit"
_DESCRIBE_DEVICES = "sudo nvidia-ctk cdi generate --output=/etc/cdi/nvidia.yaml"
# The toolkit brings `nvidia-smi` into a container along with the devices.
PROOF = "nvidia-smi -L"
_NO_UTILITY = (
    "`-e NVIDIA_DRIVER_CAPABILITIES=compute,utility` gives it to a container whose image asks for "
    "less"
)
# In the path of each specification of the Container Device Interface.
CDI_FOLDER = "/cdi/"


def has_gpus(facts: HostFacts) -> bool:
    """Return whether the host lists GPUs."""
    return isinstance(facts.gpus, Inventory) and bool(facts.gpus.gpus)


def unproved(facts: HostFacts) -> Finding:
    """Judge the toolkit without a container to prove it in."""
    if not facts.has_containers:
        return WITHOUT_CONTAINERS
    if isinstance(facts.gpus, NvidiaSmiSilent):
        return skip("it is not known whether there are GPUs to give to containers")
    if not has_gpus(facts):
        return skip("no GPUs to give to containers")
    programs = [path for path in facts.toolkit if CDI_FOLDER not in path]
    engine, there = facts.required_engine, _for_its_engine(facts)
    if engine.kind.gpus == "devices" and programs and not there:
        return fail(
            f"NVIDIA's container toolkit is installed ({programs[0]}), but no file describes the "
            f"GPUs, which {engine.name} needs to give them to containers",
            _DESCRIBE_DEVICES,
        )
    if not there:
        return fail(
            "NVIDIA's container toolkit is not installed: containers get no GPUs",
            *_install(engine, facts.distribution),
        )
    return warn(
        f"installed ({there[0]}), but not tried",
        f"`jlr doctor {facts.host} --image IMAGE` runs `nvidia-smi` in a container",
    )


def proved(facts: HostFacts, where: str, done: Completed) -> Finding:
    """Judge the toolkit by the result of `PROOF` in the container that `where` names."""
    if done.status == 0:
        gpus = sum(line.startswith("GPU ") for line in done.stdout.splitlines())
        return fine(f"`nvidia-smi` in {where}: {gpus} GPU{'' if gpus == 1 else 's'}")
    said = one_line(done.stderr) or one_line(done.stdout) or f"exit status {done.status}"
    text = f"containers get no GPUs: `nvidia-smi` in {where} says {said}"
    if _for_its_engine(facts) and "not found" in said:
        return fail(text, _NO_UTILITY)
    return refused(facts, text)


def _for_its_engine(facts: HostFacts) -> list[str]:
    """Return what the host's engine gives GPUs by: files that describe them, or programs."""
    described = facts.required_engine.kind.gpus == "devices"
    return [path for path in facts.toolkit if (CDI_FOLDER in path) == described]


def refused(facts: HostFacts, reason: str) -> Finding:
    """Return that the engine gives containers no GPUs, for the reason in a message."""
    if (mended := mend(reason)) is not None:
        return fail(reason, mended)
    engine = facts.required_engine
    if facts.toolkit:
        return fail(reason, *_make_known(engine))
    return fail(reason, *_install(engine, facts.distribution))


def _install(engine: Engine, distribution: tuple[str, ...]) -> tuple[str, ...]:
    """Return the commands that install the toolkit and make it known to the engine."""
    return (
        *installation.commands("nvidia-container-toolkit", distribution),
        *_make_known(engine),
    )


def _make_known(engine: Engine) -> tuple[str, ...]:
    """Return the commands that make an installed toolkit known to the engine."""
    daemon = engine.kind.daemon
    if daemon is None:
        return (_DESCRIBE_DEVICES,)
    return (
        f"sudo nvidia-ctk runtime configure --runtime={daemon}",
        f"sudo systemctl restart {daemon}   # ends the containers that run",
    )
