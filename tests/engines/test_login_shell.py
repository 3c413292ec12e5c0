"""Engines that only a login shell of the host finds, as startup files for persons name them."""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.doctor.parts import examined
from tests.engines.conftest import IMAGE
from tests.engines.parts import told
from tests.gpus.stand_in import Gpus
from tests.lab import apptainer
from tests.lab.accounts import Account, claimed_account
from tests.lab.engine import Engine
from tests.lab.laptop import Laptop
from tests.lab.place import Say, private_folder
from tests.lab.remote_host import Keys, new_laptop, running_sshd
from tests.sessions.parts import failed, link_all_but, started

PROGRAMS = ("docker", "podman", "apptainer", "singularity", "nvidia-smi")
GUARD = "case $- in *i*) ;; *) return;; esac\n"


@dataclass(frozen=True)
class Host:
    """A host without an engine on the PATH of a command by ssh, and a laptop that knows it.

    Attributes:
        path: the PATH of a command by ssh.
        more: a folder that has docker, too.
    """

    laptop: Laptop
    account: Account
    engine: Engine
    path: Path
    more: Path

    def profile(self, text: str, guarded: str = "") -> None:
        """Write the startup files: of a login shell, and behind the test for a person."""
        home = self.account.home
        counted = f"echo login >>{home}/logins; echo welcome\nPATH={self.path}\n"
        (home / ".bash_profile").write_text(f"{counted}{text}\n. ~/.bashrc\n", encoding="utf-8")
        (home / ".bashrc").write_text(f"{GUARD}{guarded}\n", encoding="utf-8")
        self.laptop.jlr("disconnect", "lab")
        (home / "logins").unlink(missing_ok=True)

    @property
    def logins(self) -> int:
        """How many login shells have begun since the startup files were written."""
        counted = self.account.home / "logins"
        return counted.read_text("utf-8").count("login\n") if counted.exists() else 0


@pytest.fixture(scope="module")
def host(engine: Engine, keys: Keys) -> Iterator[Host]:
    with private_folder("plain") as plain, private_folder("more") as more:
        link_all_but(list(PROGRAMS), plain)
        (more / "docker").symlink_to("/usr/bin/docker")
        variables = {"PATH": str(plain), "DOCKER_HOST": ""}
        with (
            claimed_account() as account,
            running_sshd(engine, keys, environment=variables) as server,
            new_laptop(server, account, keys) as laptop,
        ):
            yield Host(laptop, account, engine, plain, more)


@pytest.fixture
def name(host: Host) -> Iterator[str]:
    made = f"lab-{secrets.token_hex(4)}"
    yield made
    host.laptop.jlr("rm", f"lab/{made}", "--yes", "--force")
    host.engine.remove_containers(made)


def test_an_engine_of_a_login_shell_serves_all_commands_and_the_link(host: Host, name: str) -> None:
    """The later links ask again before their first script, and each link once."""
    host.profile(f"PATH=$PATH:{host.more}", f"export DOCKER_HOST={host.engine.url}")
    session = started(host.laptop, name, "--image", IMAGE)
    assert session.ask("api/status")["kernels"] == 0
    assert host.logins == 1
    assert host.laptop.jlr("disconnect", "lab").status == 0
    listed = told(host.laptop, "list", "lab", "--json")
    assert [each["state"] for each in listed if each["name"] == name] == ["up"]
    shell = host.laptop.jlr("shell", name, "--", "sh", "-c", "ls /.dockerenv")
    assert (shell.status, shell.stdout) == (0, "/.dockerenv\n"), shell
    assert host.logins == 2
    stopped = host.laptop.jlr("stop", name, "--yes")
    assert (stopped.status, "stopped JupyterLab" in stopped.stdout) == (0, True), stopped


def test_an_engine_that_was_named_is_looked_for_there_too(host: Host, name: str) -> None:
    host.profile(f"PATH=$PATH:{host.more}; export DOCKER_HOST={host.engine.url}")
    words = ("run", "lab", "--name", name, "--image", IMAGE, "--runtime", "docker", "--rm")
    ran = host.laptop.jlr(*words, "--", "echo", "here", timeout=120)
    assert (ran.status, ran.stdout) == (0, "here\n"), ran


def test_where_it_was_looked_for_is_told(host: Host, name: str) -> None:
    host.profile("PATH=$PATH:/opt/site")
    for words in (("start", "lab", name, "--image", IMAGE), ("image", "list", "lab")):
        host.laptop.jlr(*words).checked(
            1,
            "neither docker nor podman was found on the host: looked for",
            "the login shell `/bin/bash`, which adds /opt/site",
        )
    assert host.logins == 1


def test_without_an_answer_of_a_login_shell_it_is_not_known(host: Host, name: str) -> None:
    host.profile("exit 3")
    unknown = host.laptop.jlr("start", "lab", name, "--image", IMAGE).checked(
        1,
        "cannot tell whether the host has docker or podman",
        "its login shell `/bin/bash` gave no answer",
    )
    assert "apt install" not in unknown.stderr
    doctor = examined(host.laptop, "lab")
    doctor.failed("engine", 1, "cannot tell whether the host has docker or podman", "no answer")
    assert doctor.of("driver")["text"].startswith("cannot tell whether this host has NVIDIA GPUs")


@pytest.fixture
def gpus(host: Host) -> Iterator[Gpus]:
    """Two GPUs, whose `nvidia-smi` only a login shell finds."""
    made = Gpus(host.more)
    made.install()
    yield made
    made.remove()


@pytest.mark.long
def test_gpus_are_asked_for_where_only_a_login_shell_finds_nvidia_smi(
    host: Host, gpus: Gpus
) -> None:
    host.profile(f"PATH=$PATH:{host.more}")
    assert len(told(host.laptop, "gpus", "lab", "--json")["gpus"]) == 2
    assert host.logins == 1
    host.profile("PATH=$PATH:/opt/site")
    failed(host.laptop.jlr("gpus", "lab"), 1, "no `nvidia-smi` on `lab`: looked for", "/opt/site")
    host.profile("exit 3")
    failed(host.laptop.jlr("gpus", "lab"), 1, "cannot tell whether `lab` has GPUs", "no answer")
    host.profile(f"PATH=$PATH:{host.more}")
    with host.laptop.spawn("gpus", "lab", "--watch", "600", "--json") as watching:
        assert watching.stdout is not None
        assert watching.stdout.readline().count('"NVIDIA H200"') == 2
        watching.kill()


def test_doctor_looks_for_engine_and_gpus_there(host: Host, gpus: Gpus) -> None:
    host.profile(f"PATH=$PATH:{host.more}", f"export DOCKER_HOST={host.engine.url}")
    report = examined(host.laptop, "lab")
    assert report.of("engine")["mark"] == "ok"
    assert report.of("driver")["text"] == "2x NVIDIA H200"


def test_apptainer_is_looked_for_there(host: Host, name: str, say: Say) -> None:
    if reasons := apptainer.missing():
        pytest.skip("; ".join(reasons))
    image = str(apptainer.ensure(host.engine, say))
    words = ("--image", image, "--runtime", "apptainer")
    host.profile("PATH=$PATH:/opt/site")
    missing = host.laptop.jlr("start", "lab", name, *words, "--no-browser")
    failed(missing, 1, "`apptainer` was not found on `lab`: looked for", "/opt/site")
    host.profile(f"PATH=$PATH:{apptainer.folder()}/usr/bin")
    ran = host.laptop.jlr("run", "lab", *words, "--rm", "--", "echo", "here", timeout=120)
    assert (ran.status, ran.stdout) == (0, "here\n"), ran
