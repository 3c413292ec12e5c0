"""Facts about a host: the scripts that ask for them, in two round trips, and what these print."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from jlremote.doctor.diagnosis import skip
from jlremote.errors import JlrError
from jlremote.gpus.inventory import Inventory
from jlremote.gpus.snapshot import CannotAsk, read, snapshot_script
from jlremote.images.image_commands import inspect_image_argv
from jlremote.place.clusters.scheduler import SchedulerFacts
from jlremote.place.clusters.slurm import SLURM
from jlremote.place.host import installation
from jlremote.place.host.contract import Completed, Steps
from jlremote.place.host.shell_text import TOOK_TOO_LONG, command_line
from jlremote.place.runtimes.docker import networks
from jlremote.place.runtimes.docker.docker_commands import usable_argv
from jlremote.place.runtimes.engine.engine_errors import (
    EngineUnusable,
    engine_error,
    tried,
    unless_silent,
)
from jlremote.place.runtimes.engine.kinds import DOCKER, Engine
from jlremote.text import one_line, size_in_words
from jlremote.untrusted import count

WITHOUT_CONTAINERS = skip("without containers (`--runtime none`)")


@dataclass(frozen=True)
class DiskSpace:
    """A folder on the host's disks, with the space that is left there."""

    folder: str
    complaint: str | None = None  # why nothing can be written there, `None` if it can
    free_bytes: int | None = None  # the free space, `None` if unknown

    def __str__(self) -> str:
        size = "?" if self.free_bytes is None else size_in_words(self.free_bytes)
        return f"{size} free in {self.folder}"


@dataclass(frozen=True)
class HostFacts:
    """What the host reports about itself."""

    host: str  # what was typed after `ssh`
    user: str = "?"
    system: str = ""  # the name of its distribution
    distribution: tuple[str, ...] = ()  # `ID` and then `ID_LIKE` of its `os-release`
    machine: str = ""  # the output of `uname -m`
    kills_at_logout: bool = False  # whether systemd ends the user's processes at the last logout
    home: DiskSpace = DiskSpace("~")
    temporary: DiskSpace = DiskSpace("/tmp")  # noqa: S108  # it is a place to look at
    engine: Engine | None = None  # `None` for runtime `none`
    engine_version: str | None = None  # `None` if it was not found
    engine_error: JlrError | None = None  # why it cannot be used
    scheduler: SchedulerFacts | None = None  # the scheduler of its cluster, `None` for none
    apptainer: str = ""  # the version of Apptainer or its older form, empty for none
    others: tuple[EngineUnusable, ...] = ()  # why engines before this one cannot be used
    looked: str = ""  # where programs were looked for, in words, if a plain look found not all
    unasked: str = ""  # why it is not known what a login shell finds, empty if it is
    storage: DiskSpace | None = None  # the folder of its images, `None` if unknown
    hardware: int = 0  # how many NVIDIA GPUs are on the bus
    driver: str = ""  # the version of the loaded driver, empty for none
    gpus: Inventory | CannotAsk | None = None  # what `nvidia-smi` lists, or why it does not
    # Paths of NVIDIA's container toolkit: its programs, and the files that describe GPUs to podman.
    toolkit: tuple[str, ...] = ()
    left_over: tuple[str, ...] | None = ()  # networks of sessions that are gone; `None` if unknown
    image: str | None = None  # the image of a new container as it was typed, `None` for none
    image_found: bool = False  # whether the host has it
    image_complaint: str | None = None  # why the engine does not answer, `None` if it does
    image_needed: bool = True  # whether a container is to be created because no session runs

    @property
    def has_containers(self) -> bool:
        """Whether there is an engine, which may be unusable."""
        return self.engine is not None

    @property
    def has_gpus(self) -> bool:
        return isinstance(self.gpus, Inventory) and bool(self.gpus.gpus)

    @property
    def required_engine(self) -> Engine:
        assert self.engine is not None
        return self.engine


# The address of the connection, and the user.
GREETING: Steps = {"address": 'printf "%s\\n" "$SSH_CONNECTION"', "user": "id -un || id -u"}

# A quota and a full disk show only when a file is written. `cat` writes it, because a shell's own
# `echo` reports `I/O error` for every reason.
_PLACE = """\
folder={folder}; printf '%s\\n' "$folder"
file=$(mktemp "$folder/.jlr-doctor-XXXXXXXX") &&
  {{ printf jlr | cat >"$file"; status=$?; rm -f "$file"; }}
[ "${{status:-1}}" = 0 ] || exit 1
LC_ALL=C df -Pk "$folder" | tail -n 1
"""
# `-P` prints a line per file system: name, blocks, used, available, capacity, mount point.
_AVAILABLE_COLUMN = 3

_BEYOND_LOGOUT = """\
busctl get-property org.freedesktop.login1 /org/freedesktop/login1 \
  org.freedesktop.login1.Manager KillUserProcesses 2>/dev/null
[ ! -e "/var/lib/systemd/linger/$(id -un)" ] || echo lingers
"""
# Class 03: display controllers; 0x10de is NVIDIA's number. WSL has no such bus, and /dev/dxg.
_HARDWARE = """\
for device in /sys/bus/pci/devices/*; do
  [ "$(cat "$device/vendor" 2>/dev/null)" = 0x10de ] || continue
  case $(cat "$device/class" 2>/dev/null) in 0x03*) printf '%s\\n' "$device";; esac
done
"""
_DRIVER = "head -n 1 /proc/driver/nvidia/version 2>/dev/null"
_TOOLKIT = """\
for program in nvidia-ctk nvidia-container-cli nvidia-container-runtime-hook OLD_TOOL; do
  PATH=$PATH:/usr/sbin:/sbin command -v $program
done
grep -ls nvidia.com/gpu /etc/cdi/*.y*ml /etc/cdi/*.json /var/run/cdi/*.y*ml /var/run/cdi/*.json
true
"""
_DAEMON = "daemon"


def steps(engine: Engine | None, image: str | None, *, silent: bool = False) -> Steps:
    """Return the steps for all facts about a host; a `silent` engine is asked nothing more."""
    asked = {
        "user": "id -un || id -u",
        "system": "uname -s; uname -m; cat /etc/os-release 2>/dev/null",
        "home": _PLACE.format(folder='"$HOME"'),
        "temporary": _PLACE.format(folder='"${TMPDIR:-/tmp}"'),
        "logout": _BEYOND_LOGOUT,
        "scheduler": SLURM.presence(),
        "apptainer": "apptainer --version 2>/dev/null || singularity --version 2>/dev/null",
        "hardware": _HARDWARE,
        "driver": _DRIVER,
        "gpus": snapshot_script(engines=()),
    }
    is_docker = engine is not None and engine.everyday.kind is DOCKER.kind
    asked["toolkit"] = _TOOLKIT.replace("OLD_TOOL", "nvidia-docker" if is_docker else "")
    if engine is None:
        return asked
    trial = f"exit {TOOK_TOO_LONG}" if silent else tried(usable_argv(engine))
    asked |= {"engine": command_line(engine("--version")), _DAEMON: trial}
    field = "{{.Store.GraphRoot}}" if engine.kind.program == "podman" else "{{.DockerRootDir}}"
    root = engine("info", "--format", field)
    asked["storage"] = (
        f"{unless_silent(_DAEMON)}\n"
        f"root=$({tried(root)} 2>/dev/null)\n"
        '[ -n "$root" ] || exit 1\n'
        'printf "%s\\n" "$root"; LC_ALL=C df -Pk "$root" | tail -n 1\n'
    )
    asked["networks"] = f"{unless_silent(_DAEMON)}\n{networks.left_over(engine)}"
    if image is not None:
        asked["image"] = f"{unless_silent(_DAEMON)}\n{tried(inspect_image_argv(engine, image))}"
    return asked


def read_facts(
    host: str, engine: Engine | None, image: str | None, answers: Mapping[str, Completed]
) -> HostFacts:
    """Return the facts that the steps printed."""
    kernel, _, rest = answers["system"].stdout.strip().partition("\n")
    machine, _, release = rest.partition("\n")
    named = installation.os_release(release)
    storage, version = answers.get("storage"), None
    # As `NVRM version: NVIDIA UNIX x86_64 Kernel Module  550.54.15  Tue …`.
    driver = answers["driver"].stdout.split()
    gpus: Inventory | CannotAsk
    try:
        gpus = read(answers["gpus"].stdout, host)
    except CannotAsk as reason:
        gpus = reason
    networks, logout = answers.get("networks"), answers["logout"].stdout
    left_over = None
    if networks is not None and networks.status == 0:
        left_over = tuple(map(one_line, networks.stdout.splitlines()))
    described, complaint = answers.get("image"), None
    if described is not None and described.status != 0:
        gone = re.search("no such image|not known|no such object", described.stderr.lower())
        complaint = None if gone else described.complaint
    error = None
    if engine is not None:
        daemon, client = answers[_DAEMON], answers["engine"]
        version = one_line(client.stdout.partition("\n")[0]) if client.status == 0 else None
        error = engine_error(engine, daemon) if daemon.status != 0 else None
    return HostFacts(
        host=host,
        user=one_line(answers["user"].stdout) or "?",
        system=one_line(named.get("PRETTY_NAME") or kernel),
        distribution=installation.distribution_of(named),
        machine=one_line(machine),
        kills_at_logout="b true" in logout and "lingers" not in logout,
        home=_disk(answers["home"], "the home folder"),
        temporary=_disk(answers["temporary"], "the temporary folder"),
        scheduler=SLURM.read_presence(answers["scheduler"].stdout),
        apptainer=one_line(answers["apptainer"].stdout),
        engine=engine,
        engine_version=version,
        engine_error=error,
        storage=_disk(storage, "") if storage is not None and storage.status == 0 else None,
        hardware=len(answers["hardware"].stdout.split()),
        driver=next((w for w in driver if w[:1].isdigit() and "." in w), ""),
        gpus=gpus,
        toolkit=tuple(map(one_line, answers["toolkit"].stdout.splitlines())),
        left_over=left_over,
        image=image,
        image_found=described is not None and described.status == 0,
        image_complaint=complaint,
    )


def _disk(answer: Completed, otherwise: str) -> DiskSpace:
    folder, _, table = answer.stdout.strip().partition("\n")
    folder = one_line(folder) or otherwise
    if answer.status != 0:
        complaint = answer.stderr.strip().splitlines()
        reason = one_line(complaint[0]).rpartition(": ")[2] if complaint else "it cannot be written"
        return DiskSpace(folder, complaint=reason)
    columns = table.split()
    # Counted from the right: a device's name may contain blanks.
    blocks = count(columns[-3]) if len(columns) > _AVAILABLE_COLUMN + 1 else None
    return DiskSpace(folder, free_bytes=None if blocks is None else blocks * 1024)
