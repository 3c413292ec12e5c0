"""Podman with root and without, and `sudo`, for one account of the lab.

Their images are docker's own, brought over once and kept below the lab's folder.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from tests.lab import images
from tests.lab.accounts import Account
from tests.lab.engine import Engine
from tests.lab.place import LabError, Say, exclusive, root
from tests.lab.programs import Result, attempt, run
from tests.lab.sshd import ONLY_PASSWORD

PROGRAMS = ("podman", "sudo", "slirp4netns", "newuidmap")
# The kernel gives no rlimits above those that a process has, and podman asks for more by itself.
CONTAINERS_CONF = """\
[containers]
default_ulimits = ["nofile=1024:1024", "nproc=4096:4096"]
log_driver = "k8s-file"
[engine]
cgroup_manager = "cgroupfs"
events_logger = "file"
"""
# The lab's registries are on the loopback and have no TLS; docker takes that as it is.
REGISTRIES_CONF = """\
[[registry]]
location = "127.0.0.1"
insecure = true
"""
TRUSTED = Path("/etc/containers/registries.conf.d/jlr-lab.conf")
# What NVIDIA's toolkit writes down about two GPUs, which are stood in for.
CDI = Path("/var/run/cdi/jlr-lab.json")
DEVICES = {"0": ("/dev/fuse",), "1": ("/dev/net/tun",), "all": ("/dev/fuse", "/dev/net/tun")}
# One group may use `sudo` without a password and one with it.
FREELY, WITH_PASSWORD = "jlrlab-free", "jlrlab-asked"
PAM_SERVICE = "jlr-lab-sudo"
SUDOERS = f"""\
Defaults:%{FREELY},%{WITH_PASSWORD} \\
  pam_service = {PAM_SERVICE}, env_keep += "DOCKER_HOST CONTAINERS_CONF CONTAINERS_STORAGE_CONF"
%{FREELY} ALL=(root) NOPASSWD: ALL
%{WITH_PASSWORD} ALL=(root) ALL
"""


def missing() -> list[str]:
    """Return what is not installed."""
    return [f"`{program}` is not installed" for program in PROGRAMS if not shutil.which(program)]


@dataclass(frozen=True)
class Podman:
    """Podman of one account, or root's."""

    account: Account | None = None

    def __call__(self, *argv: str, timeout: float = 60) -> str:
        """Run `podman …` and return its stdout."""
        result = self.attempt(*argv, timeout=timeout)
        if result.status != 0:
            raise LabError(str(result))
        return result.stdout.strip()

    def attempt(self, *argv: str, timeout: float = 60) -> Result:
        """Run it, however it ends."""
        return attempt(*self.argv(*argv), timeout=timeout, cwd=Path("/"))

    def argv(self, *argv: str) -> tuple[str, ...]:
        """Return the command, as root runs it."""
        variables = tuple(f"{name}={value}" for name, value in environment().items())
        begin = ("env", *variables)
        if self.account is not None:
            home = f"HOME={self.account.home}"
            begin = ("runuser", "-u", self.account.name, "--", "env", "-i", home, *variables)
            begin = (*begin, "PATH=/usr/bin:/bin")
        return (*begin, "podman", *argv)

    def ensure(self, engine: Engine, image: str) -> None:
        """Copy an image from the lab's engine, unless podman has the same one."""
        template = f'{{{{index .Labels "{images.LABEL}"}}}}'
        there = self.attempt("image", "inspect", "--format", template, image)
        if there.status != 0 or there.stdout.strip() != images.built_hash(engine, image):
            images.copy(engine, image, *self.argv("load", "--quiet"))

    def remove_containers(self) -> None:
        """Remove all containers of the account; root's may be other runs' as well."""
        if self.account is not None:
            self("rm", "--all", "--force", "--time=0")


def folder() -> Path:
    made = root() / "podman"
    made.mkdir(mode=0o755, exist_ok=True)
    return made


def environment() -> dict[str, str]:
    """Return the variables that lead podman to the lab's settings."""
    names = {"CONTAINERS_CONF": "containers.conf", "CONTAINERS_STORAGE_CONF": "storage.conf"}
    return {variable: str(folder() / name) for variable, name in names.items()}


@contextmanager
def prepared(account: Account, engine: Engine, images: Sequence[str], say: Say) -> Iterator[None]:
    """Give an account podman and `sudo` with what it needs of the machine."""
    with exclusive(folder() / "lock", say, "another run that prepares podman"):
        _prepare_machine(account)
        for podman in (Podman(), Podman(account)):
            for image in images:
                podman.ensure(engine, image)
    try:
        yield
    finally:
        with suppress(LabError):
            Podman(account).remove_containers()
        may_sudo(account, None)
        account.end_processes()
        # What is left of it there would seem to run still.
        shutil.rmtree(f"/tmp/podman-run-{account.uid}", ignore_errors=True)


def _prepare_machine(account: Account) -> None:
    storage = f'[storage]\ndriver = "overlay"\ngraphroot = "{folder()}/root"\n'
    storage += f'runroot = "/run/jlr-lab-podman"\nrootless_storage_path = "{folder()}/$UID"\n'
    for name, text in (("containers.conf", CONTAINERS_CONF), ("storage.conf", storage)):
        (folder() / name).write_text(text, encoding="utf-8")
    TRUSTED.write_text(REGISTRIES_CONF, encoding="utf-8")
    run("install", "-d", "-m", "700", "-o", account.name, str(folder() / str(account.uid)))
    shutil.rmtree(f"/tmp/podman-run-{account.uid}", ignore_errors=True)
    Path("/dev/net/tun").chmod(0o666)  # as udev would have it
    for group in (FREELY, WITH_PASSWORD):
        run("groupadd", "--force", "--system", group)
    Path("/etc/pam.d", PAM_SERVICE).write_text("\n".join((*ONLY_PASSWORD, "")), encoding="utf-8")
    sudoers = Path("/etc/sudoers.d/jlr-lab")
    sudoers.write_text(SUDOERS, encoding="utf-8")
    sudoers.chmod(0o440)


@contextmanager
def described_gpus(say: Say) -> Iterator[None]:
    """Describe two GPUs to podman, for one run at a time, since it is the machine's own place.

    Each brings a device into a container that would not be there otherwise.
    """
    with exclusive(folder() / "cdi.lock", say, "another run that describes GPUs"):
        describe(DEVICES)
        try:
            yield
        finally:
            CDI.unlink()


def describe(gpus: Mapping[str, Sequence[str]]) -> None:
    """Write down the GPUs of this machine by name, with the devices of each."""
    devices = [
        {"name": name, "containerEdits": {"deviceNodes": [{"path": path} for path in paths]}}
        for name, paths in gpus.items()
    ]
    CDI.parent.mkdir(mode=0o755, exist_ok=True)
    described = {"cdiVersion": "0.5.0", "kind": "nvidia.com/gpu", "devices": devices}
    CDI.write_text(json.dumps(described), encoding="utf-8")


def may_sudo(account: Account, group: str | None) -> None:
    """Put an account into one of the two groups, or into none."""
    for other in (FREELY, WITH_PASSWORD):
        attempt("gpasswd", "--delete", account.name, other)
    if group is not None:
        run("gpasswd", "--add", account.name, group)
