"""Checks of the connection, by how it failed, and of the host: disks, engine, driver and image.

The link connects in one go and reports the first error; all that lies before it has worked.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from jlremote import errors
from jlremote.doctor.diagnosis import Check, Finding, fail, fine, from_error, skip, warn
from jlremote.doctor.host_facts import WITHOUT_CONTAINERS, HostFacts
from jlremote.errors import JlrError, NotFound
from jlremote.gpus.inventory import Inventory
from jlremote.gpus.snapshot import CannotAsk, NvidiaSmiMissing, NvidiaSmiSilent
from jlremote.place.host import installation
from jlremote.place.host.shell_text import command_line
from jlremote.place.runtimes.engine.engine_errors import DockerIsPodman, EngineMissing
from jlremote.place.runtimes.engine.kinds import DOCKER
from jlremote.text import listed

LITTLE_IN_HOME = 1 * 1000**3
LITTLE_FOR_IMAGES = 10 * 1000**3  # NVIDIA's PyTorch image takes more than 20 GB
_SHOWN = 5  # names of networks

NO_GPU = "this host has no NVIDIA GPU"
UNKNOWN_GPUS = "cannot tell whether this host has NVIDIA GPUs: "

CONFIG, NAME, PORT, SSH = "ssh config", "name", "port", "ssh server"
KEY, LOGIN, SHELL = "host key", "login", "shell"


@dataclass(frozen=True)
class ConnectionFacts:
    """The result of an attempt to connect."""

    error: JlrError | None = None  # why it failed, `None` if it did not
    asked_for_key: bool = False  # whether it failed at the question whether to trust the host's key
    notes: tuple[str, ...] = ()  # what the user's ssh settings ask for that jlr does not do
    address: str = ""  # the host's own address, as its SSH server sees it; empty if unknown
    port: str = ""  # its TCP port there
    user: str = ""  # the name on the host
    refusal: str | None = None  # why its SSH server permits no forwarding, `None` if it does


# Which errors belong to which check; a subclass comes before its base.
_ERRORS: tuple[tuple[str, tuple[type[JlrError], ...]], ...] = (
    (KEY, (errors.HostKey,)),
    (SHELL, (errors.NoShell,)),
    (LOGIN, (errors.Authentication,)),
    (NAME, (errors.NameNotResolved,)),
    (SSH, (errors.NotSSH, errors.NoCommonAlgorithm, errors.LinkLost)),
    (PORT, (errors.Unreachable,)),
)


def failed_at(facts: ConnectionFacts) -> str:
    """Return the name of the check that the error belongs to."""
    if facts.asked_for_key:
        return KEY
    return next((name for name, kinds in _ERRORS if isinstance(facts.error, kinds)), CONFIG)


def _stage(
    name: str, passed: Callable[[ConnectionFacts], str], *needs: str
) -> Check[ConnectionFacts]:
    def judge(facts: ConnectionFacts) -> Finding:
        if facts.error is not None and failed_at(facts) == name:
            return from_error(facts.error)
        if name == CONFIG and facts.notes:
            return warn("; ".join(facts.notes))
        return fine(passed(facts))

    return Check(name, judge, needs)


def _forwarding(facts: ConnectionFacts) -> Finding:
    if facts.refusal is None:
        return fine("permitted")
    return fail(
        f"the SSH server permits no forwarding: {facts.refusal}",
        "ask its administrator for `AllowTcpForwarding local` in `sshd_config`, and for "
        "`PermitOpen any` if that is set",
    )


CONNECTION: tuple[Check[ConnectionFacts], ...] = (
    _stage(CONFIG, lambda _: "can be read"),
    _stage(NAME, lambda _: "has an address", CONFIG),
    _stage(PORT, lambda f: f"{f.address} port {f.port}" if f.address else "answers", NAME),
    _stage(SSH, lambda _: "speaks SSH", PORT),
    _stage(KEY, lambda _: "is the known one", SSH),
    _stage(LOGIN, lambda f: f"as {f.user}" if f.user else "is accepted", KEY),
    _stage(SHELL, lambda _: "runs scripts", LOGIN),
    Check("forwarding", _forwarding, needs=(SHELL,)),
)


def _disk(facts: HostFacts) -> Finding:
    folders = [(facts.home, LITTLE_IN_HOME), (facts.temporary, LITTLE_IN_HOME)]
    if facts.storage is not None:
        folders.append((facts.storage, LITTLE_FOR_IMAGES))
    if unusable := [space for space, _ in folders if space.complaint is not None]:
        names = [command_line((space.folder,)) for space in unusable]
        return fail(
            "; ".join(f"nothing can be written to {s.folder}: {s.complaint}" for s in unusable),
            *(f"df -h {name}; du -xh --max-depth=1 {name} | sort -h | tail" for name in names),
        )
    scarce = [
        str(space)
        for space, least in folders
        if space.free_bytes is not None and space.free_bytes < least
    ]
    if scarce:
        also = (facts.engine.shown("system", "df"),) if facts.engine else ()
        return warn(f"little space is left: {'; '.join(scarce)}", "df -h", *also)
    return fine("; ".join(str(space) for space, _ in folders))


def _scheduler(facts: HostFacts) -> Finding:
    scheduler = facts.scheduler
    assert scheduler is not None
    if scheduler.complaint is not None:
        return warn(
            f"{scheduler.version} does not answer: {scheduler.complaint}",
            "its jobs go on meanwhile; `scontrol ping` on the host shows when it is back",
        )
    return fine("; ".join(filter(None, (scheduler.version, scheduler.choices))))


def _apptainer(facts: HostFacts) -> Finding:
    if facts.apptainer:
        return fine(facts.apptainer)
    where = f" ({facts.unasked or facts.looked})" if facts.looked else ""
    return skip(
        f"not on the login node{where}; `--image` needs it on the nodes, and then `--pull-on job`",
        "where the site has it as a module: `module load` in `~/.bashrc` there",
    )


def _engine(facts: HostFacts) -> Finding:
    engine, error = facts.required_engine, facts.engine_error
    if isinstance(error, EngineMissing) and facts.scheduler is not None:
        return skip("no container engine; `jlr run --slurm` and `--runtime none` need none")
    if facts.engine_version is None:
        # It may be there, and `sudo` before it refuse.
        if error and not isinstance(error, EngineMissing):
            return from_error(error)
        return _no_engine(facts)
    if "podman" in facts.engine_version and engine.kind is DOCKER.kind:
        return from_error(DockerIsPodman())
    others = facts.others
    text = "; ".join((facts.engine_version, *(other.message for other in others)))
    broken = [o for o in others if not isinstance(o, EngineMissing | DockerIsPodman)]
    return warn(text, *(o.hint for o in broken if o.hint)) if broken else fine(text)


def _no_engine(facts: HostFacts) -> Finding:
    engine = facts.required_engine
    both = any(isinstance(other, EngineMissing) for other in facts.others)
    where = f": {facts.looked}" if facts.looked else ""
    if facts.unasked:
        which = "docker or podman" if both else f"`{engine.name}`"
        return fail(f"cannot tell whether the host has {which}{where}")
    return fail(
        f"{'neither docker nor podman' if both else f'`{engine.name}`'} was "
        f"{'' if both else 'not '}found on the host{where}",
        *installation.commands(engine.everyday.kind.program, facts.distribution),
        *(("or images by Apptainer: `--runtime apptainer`",) if facts.apptainer else ()),
        "or without containers: `--runtime none`",
    )


def _permission(facts: HostFacts) -> Finding:
    engine, error = facts.required_engine, facts.engine_error
    if error is None:
        runs = ", and it runs" if engine.kind.daemon else ""
        return fine(f"{facts.user} may use {engine.name}{runs}")
    if "may not use" not in error.message:
        return from_error(error)
    group = engine.kind.daemon or engine.kind.program
    joins = command_line(("sudo", "usermod", "-aG", group, facts.user))
    return from_error(error, joins, f"then `jlr disconnect {facts.host}`: a login reads groups")


def _networks(facts: HostFacts) -> Finding:
    if facts.left_over is None:
        return skip("the engine does not list them")
    if not facts.left_over:
        return fine("none is left over")
    names = listed(facts.left_over, _SHOWN)
    return warn(f"left over from sessions that are gone: {names}", f"jlr image prune {facts.host}")


def _driver(facts: HostFacts) -> Finding:
    gpus = facts.gpus
    if isinstance(gpus, Inventory) and gpus.gpus:
        version = f"{facts.driver}, " if facts.driver else ""
        names = [gpu.name for gpu in gpus.gpus]
        counted = (f"{names.count(name)}x {name}" for name in dict.fromkeys(names))
        return fine(f"{version}{', '.join(counted)}")
    reason = gpus.message if isinstance(gpus, CannotAsk) else ""
    if isinstance(gpus, NvidiaSmiSilent):
        have = f"the driver {facts.driver} is loaded, but " if facts.driver else UNKNOWN_GPUS
        return fail(f"{have}{reason}", *((gpus.hint,) if gpus.hint else ()))
    if not facts.hardware and not facts.driver:
        if isinstance(gpus, NvidiaSmiMissing) and facts.unasked:
            return warn(f"{UNKNOWN_GPUS}{reason}, and {facts.unasked}")
        return warn(f"{NO_GPU} ({reason})" if reason else NO_GPU)
    if facts.driver:
        return fail(
            f"the driver {facts.driver} is loaded but does not work: {reason or 'it lists no GPU'}",
            "`sudo reboot` is needed after an update of the driver; "
            "`sudo dmesg | grep -i nvrm` on the host tells more",
        )
    what = f"there are {facts.hardware} NVIDIA GPUs, but no driver is loaded"
    return fail(what, *installation.commands("nvidia-driver", facts.distribution))


def _image(facts: HostFacts) -> Finding:
    if facts.image is None:
        return skip("no image is named")
    if facts.image_found:
        return fine(facts.image)
    if not facts.image_needed:
        return skip(f"`{facts.image}` is gone from the host, but the session does not need it")
    if facts.image_complaint is not None:
        return fail(f"the engine cannot describe the image: {facts.image_complaint}")
    pull = command_line(("jlr", "image", "pull", facts.host, facts.image))
    missing = f"the image `{facts.image}` is not on the host"
    return fail(missing, f"`{pull}`", exit_code=NotFound.exit_code)


def _logout(facts: HostFacts) -> Finding:
    if facts.has_containers or not facts.kills_at_logout:
        stays = "containers stay" if facts.has_containers else "what you run survives the logout"
        return fine(stays)
    return warn(
        "systemd ends all your processes, Jupyter too, when your last login ends "
        "(`KillUserProcesses`)",
        command_line(("sudo", "loginctl", "enable-linger", facts.user)),
    )


def _of_engine(judge: Callable[[HostFacts], Finding]) -> Callable[[HostFacts], Finding]:
    return lambda facts: judge(facts) if facts.has_containers else WITHOUT_CONTAINERS


# For a login node of a cluster only.
CLUSTER: tuple[Check[HostFacts], ...] = (
    Check("scheduler", _scheduler, needs=("shell",)),
    Check("apptainer", _apptainer, needs=("shell",)),
)
CHECKS: tuple[Check[HostFacts], ...] = (
    Check("system", lambda f: fine(f"{f.system}, {f.machine}".strip(", ")), needs=("shell",)),
    Check("disk", _disk, needs=("shell",)),
    Check("logout", _logout, needs=("shell",)),
    Check("engine", _of_engine(_engine), needs=("shell",)),
    Check("permission", _of_engine(_permission), needs=("engine",)),
    Check("networks", _of_engine(_networks), needs=("permission",)),
    Check("driver", _driver, needs=("shell",)),
    Check("image", _image, needs=("permission",)),
)
