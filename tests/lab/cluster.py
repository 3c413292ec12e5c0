"""A small Slurm cluster in containers: a controller, two login nodes and two compute nodes.

Their images are kept between runs, the machines are not: all of them run within seconds, while
kept ones would hold memory, and carry jobs, homes and Slurm's state of one run into another. The
tests of a run share one cluster.

All share /home, as on a real cluster; the users are `alice` and `bob`. Processes are tracked, and
their memory is limited, by cgroups: a container with all capabilities can mount the old hierarchies
(cgroup v1) of a kernel that has them, and gets its own part of each. Elsewhere Slurm tracks by
parenthood (`proctrack/linuxproc`): there what survives a detaching process proves nothing of a real
cluster. Of GPUs there are the device files alone. `pam_slurm_adopt` lets a user into `node1`
by ssh only while a job of the user runs there. Accounting runs where a test asks for it.
"""

from __future__ import annotations

import os
import secrets
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.lab import apptainer
from tests.lab.engine import Engine
from tests.lab.laptop import Laptop
from tests.lab.line import Line
from tests.lab.place import Say, private_folder
from tests.lab.programs import Result, wait_until
from tests.lab.remote_host import Keys
from tests.lab.sshd import make_key

SLURM = "lab/slurm"  # 22.05, as Debian bookworm has it
NEWER_SLURM = "lab/slurm-newer"
SETTINGS = Path(__file__).with_name("slurm")
LABEL = "jlr-lab.cluster"
NODES = ("node1", "node2")
USERS = {"alice": 50001, "bob": 50002}  # as the recipe of the image has them
LOGINS = ("login", "login2")
ROLES = {
    "controller": "controller",
    **dict.fromkeys(LOGINS, "login"),
    **dict.fromkeys(NODES, "node"),
}


class Cluster:
    """A running cluster; its machines are containers called `NAME-ROLE`."""

    def __init__(self, engine: Engine, folder: Path, image: Path | None, machines: str) -> None:
        """Describe a cluster of `machines`, which have Apptainer if there is an image for it."""
        self._engine = engine
        self._folder = folder
        self.image = image
        self._machines = machines
        self._name = f"slurm-{secrets.token_hex(4)}"

    def start(self, keys: Keys, *, accounting: bool = False) -> None:
        """Start all machines and wait until jobs can run."""
        if accounting:
            (self._folder / "accounting").touch()
        shutil.copytree(SETTINGS, self._folder, dirs_exist_ok=True)
        (self._folder / "munge.key").write_bytes(os.urandom(128))
        shutil.copy(keys.authorized, self._folder / "authorized_keys")
        for machine in (*LOGINS, NODES[0]):
            make_key(self._folder / f"{machine}_ed25519")
        for user, number in USERS.items():
            home = self._folder / "home" / user
            home.mkdir(mode=0o700, parents=True)
            self._let_in(home / ".ssh")
            for path in (home, *home.rglob("*")):
                os.chown(path, number, number)
        # Killed runs left these behind.
        stale = ("--filter", f"label={LABEL}", "--filter", "until=30m")
        self._engine.docker("network", "prune", "--force", *stale)
        self._engine.docker("network", "create", "--label", LABEL, self._name)
        for machine, role in ROLES.items():
            self._engine.docker(
                *("run", "--detach", "--init", "--name", f"{self._name}-{machine}"),
                *("--hostname", machine, "--network", self._name, "--network-alias", machine),
                *(
                    "--volume",
                    f"{self._folder}:/shared:ro",
                    "--volume",
                    f"{self._folder}/home:/home",
                ),
                *(self._for_apptainer() if self.image else ()),
                *(self._machines, "sh", "/shared/machine", role),
            )
        self.wait_ready()

    def _for_apptainer(self) -> tuple[str, ...]:
        """Return the options with which a container lets users run images, as a node would."""
        folder = apptainer.folder()
        return (
            *("--cap-add", "ALL", "--cap-drop", "SYS_RESOURCE", "--device", "/dev/fuse"),
            *("--security-opt", "seccomp=unconfined", "--security-opt", "systempaths=unconfined"),
            *("--volume", f"{folder}:{folder}:ro", "--env", f"APPTAINER_FOLDER={folder}"),
        )

    def _let_in(self, folder: Path) -> None:
        """Make a key with which a user gets from the login node to a node with sshd."""
        folder.mkdir(mode=0o700)
        make_key(folder / "id_ed25519")
        shutil.copy(folder / "id_ed25519.pub", folder / "authorized_keys")
        (folder / "known_hosts").write_text(f"node1 {self._host_key(NODES[0])}", encoding="utf-8")

    def _host_key(self, machine: str) -> str:
        return (self._folder / f"{machine}_ed25519.pub").read_text(encoding="utf-8")

    def wait_ready(self) -> None:
        """Wait until all nodes take jobs; one that was declared down comes back by itself."""
        wait_until(self._is_ready, "all nodes of the cluster", timeout=60)

    def _is_ready(self) -> bool:
        states = self.try_run("login", "sinfo", "-hNo", "%T").stdout.split()
        return len(states) >= len(NODES) and set(states) <= {"idle", "mixed", "allocated"}

    def run(self, machine: str, *argv: str, user: str = "root") -> str:
        """Run a program on a machine and return its stdout."""
        return self._engine.docker("exec", "--user", user, f"{self._name}-{machine}", *argv)

    def running(self, machine: str, *argv: str, user: str) -> subprocess.Popen[str]:
        words = ("exec", "--interactive", "--user", user, f"{self._name}-{machine}", *argv)
        return subprocess.Popen(
            ("docker", "-H", self._engine.url, *words),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def try_run(self, machine: str, *argv: str) -> Result:
        return self._engine.try_docker("exec", f"{self._name}-{machine}", *argv)

    def slurm(self, *argv: str) -> str:
        return self.run("controller", *argv)

    @property
    def has_cgroups(self) -> bool:
        return "proctrack/cgroup" in self.slurm("scontrol", "show", "config")

    def wait_state(self, job: str, state: str) -> None:
        asked = ("squeue", "--noheader", "--states=all", f"--jobs={job}", "--format=%T")
        wait_until(lambda: self.slurm(*asked) == state, f"`{state}` of job {job}")

    @contextmanager
    def without_controller(self) -> Iterator[None]:
        """Stop slurmctld for the time of a `with` block; its clients wait for it less long."""
        settings = "/etc/slurm/slurm.conf"
        for machine in LOGINS:
            hurry = f"cp {settings} /root; echo MessageTimeout=1 >>{settings}"
            self.run(machine, "sh", "-c", hurry)
        self.run("controller", "pkill", "slurmctld")
        ended = ("pgrep", "slurmctld")
        wait_until(lambda: self.try_run("controller", *ended).status != 0, "its end")
        try:
            yield
        finally:
            for machine in LOGINS:
                self.run(machine, "mv", "/root/slurm.conf", settings)
            self.run("controller", "slurmctld")
            wait_until(lambda: self.try_run("login", "scontrol", "ping").status == 0, "slurmctld")

    @contextmanager
    def without(self, machine: str) -> Iterator[None]:
        """Kill a machine for the time of a `with` block."""
        self._engine.docker("kill", f"{self._name}-{machine}")
        try:
            yield
        finally:
            self._engine.docker("start", f"{self._name}-{machine}")
            self.wait_ready()

    def balancer(self) -> Line:
        """Return a way to both login nodes, which takes the next for each connection."""
        return Line(22, addresses=[self._address(machine) for machine in LOGINS])

    def _address(self, machine: str) -> str:
        key = "{{range .NetworkSettings.Networks}}{{.IPAddress}}{{end}}"
        return self._engine.docker("inspect", "--format", key, f"{self._name}-{machine}")

    def gateway(self) -> str:
        """Return the address of this machine, as the cluster's machines see it."""
        key = "{{range .IPAM.Config}}{{.Gateway}}{{end}}"
        return self._engine.docker("network", "inspect", "--format", key, self._name)

    def add_to(self, laptop: Laptop, alias: str, keys: Keys, balancer: Line | None = None) -> None:
        """Write the first login node, or a way to both, into a laptop's ssh configuration."""
        address, port = self._address(LOGINS[0]), 22
        names = {LOGINS[0]: address}
        if balancer:
            address, port = "127.0.0.1", balancer.port
            names = dict.fromkeys(LOGINS, f"[{address}]:{port}")
        place = (f"HostName {address}", f"Port {port}", "User alice")
        known = "".join(f"{name} {self._host_key(machine)}" for machine, name in names.items())
        laptop.write_host(alias, known, *place, f"IdentityFile {keys.private}")

    def remove(self) -> None:
        self._engine.remove_containers(f"{self._name}-")
        self._engine.try_docker("network", "rm", self._name)


@contextmanager
def running_cluster(
    engine: Engine, keys: Keys, say: Say, *, accounting: bool = False, machines: str = SLURM
) -> Iterator[Cluster]:
    """Give a cluster, with Apptainer where this machine can."""
    image = None if apptainer.missing() else apptainer.ensure(engine, say)
    with private_folder("slurm") as folder:
        cluster = Cluster(engine, folder, image, machines)
        try:
            cluster.start(keys, accounting=accounting)
            yield cluster
        finally:
            cluster.remove()
