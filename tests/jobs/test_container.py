"""A job in a container of its own finds there what a session would find."""

from __future__ import annotations

import re
import secrets
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.jobs.parts import whole
from tests.lab.accounts import Account
from tests.lab.containers import Container, ContainerFactory
from tests.lab.engine import Engine
from tests.lab.laptop import Laptop
from tests.lab.remote_host import Keys, new_laptop
from tests.lab.sshd import SSHServer
from tests.lab.wheels import OFFLINE, write_wheel
from tests.long import LONG

WRITES_HOME = ("sh", "-c", 'cd && touch x && echo "$(id -u) $PWD"')


@pytest.fixture
def wheels(account: Account) -> Path:
    """A folder of the host with the package `tiny`, to be mounted at /wheels."""
    return write_wheel(account.home / "wheels")


def test_a_job_of_the_user_has_a_writable_home(
    owner: Laptop, containers: ContainerFactory, account: Account, engine: Engine
) -> None:
    owner.ssh("lab", "mkdir -p proj")
    name = containers.name()
    where = ("--name", name, "--image", "lab/plain", "--workspace=proj")
    done = owner.jlr("run", "lab", *where, "--", *WRITES_HOME)
    uid, home = done.stdout.split()
    assert (done.status, int(uid)) == (0, account.uid), done
    assert home.endswith(f"/{name}/home")
    listed = owner.jlr("job", "list", "lab").stdout
    assert WRITES_HOME[2] in listed, "and nothing that jlr put around it"
    given = ("--name", containers.name(), "--image", "lab/plain", "-u", "1234", "-e", "HOME=/tmp")
    assert owner.jlr("run", "lab", *given, "--", *WRITES_HOME).stdout == "1234 /tmp\n"


def test_a_session_and_its_shell_have_a_writable_home(owner: Laptop, inside: Container) -> None:
    asked = ("-u", "1234:99")
    job = owner.jlr("run", "lab", "--in", inside.name, "--rm", *asked, "--", *WRITES_HOME)
    uid, home = job.stdout.split()
    assert uid == "1234"
    assert home.endswith(f"/{inside.name}/home")
    shell = owner.jlr("shell", f"lab/{inside.name}", *asked, "--", *WRITES_HOME, stdin="")
    assert shell.stdout == job.stdout


@pytest.mark.parametrize("user", [LONG("root"), "1234"])
def test_an_entrypoint_is_given_the_command_under_any_user(
    owner: Laptop, containers: ContainerFactory, engine: Engine, user: str
) -> None:
    image = f"lab/{containers.name()}"
    file = 'FROM lab/plain\nENTRYPOINT ["printf", "[%s]"]\n'
    engine.docker("build", "-t", image, "-", stdin=file)
    try:
        where = ("--name", containers.name(), "--image", image, "--rm", "-u", user)
        done = owner.jlr("run", "lab", *where, "--", "two  words", "$HOME")
        assert done.stdout == "[two  words][$HOME]", done
    finally:
        engine.docker("image", "rm", "--force", image)


# As NCCL's and PyTorch's processes hand over data: more than the 64 MB that containers have else.
SHARES = """
from multiprocessing import Process
from multiprocessing.shared_memory import SharedMemory

def fill(name):
    shared = SharedMemory(name)
    shared.buf[:] = b"x" * len(shared.buf)
    shared.close()

shared = SharedMemory(create=True, size=200_000_000)
worker = Process(target=fill, args=(shared.name,))
worker.start(), worker.join()
print(worker.exitcode, bytes(shared.buf[-3:]))
shared.close(), shared.unlink()
"""


def test_processes_share_memory_in_a_container_of_the_profile_nvidia(
    owner: Laptop, containers: ContainerFactory
) -> None:
    # The lab's kernel gives no container a memlock.
    where = ("--image", "lab/jupyter", "--profile", "nvidia", "--ulimit", "memlock=")
    name = containers.name()
    done = owner.jlr("run", "lab", *where, "--name", name, "--", "python3", "-c", SHARES)
    assert (done.status, done.stdout) == (0, "0 b'xxx'\n"), done


@pytest.mark.parametrize(
    ("options", "status"), [((), 127), (("--user", "1234"), 127), (("--no-init",), 6)]
)
def test_a_command_that_the_image_lacks_is_named(
    owner: Laptop, containers: ContainerFactory, options: tuple[str, ...], status: int
) -> None:
    where = ("--image", "lab/plain", "--name", containers.name(), "--rm", *options)
    done = owner.jlr("run", "lab", *where, "--", "nosuchcmd")
    assert done.status == status, done
    assert re.search("nosuchcmd`?: command not found", done.stderr), done


@pytest.fixture
def shellless(engine: Engine, tmp_path: Path) -> Iterator[str]:
    """An image with one program, which needs nothing else."""
    image = f"lab/shellless-{secrets.token_hex(4)}"
    shutil.copy("/sbin/ldconfig", tmp_path / "program")
    (tmp_path / "Dockerfile").write_text("FROM scratch\nCOPY program /\n")
    engine.docker("build", "--quiet", "-t", image, str(tmp_path))
    yield image
    engine.docker("rmi", "--force", image)


def test_an_image_without_a_shell_runs_its_program_as_the_user_with_a_home(
    owner: Laptop, containers: ContainerFactory, shellless: str
) -> None:
    name = containers.name()
    where = ("run", "lab", "--image", shellless, "--name", name)
    program = ("--", "/program", "--version")
    done = owner.jlr(*where, "--user", "1234", "-e", "HOME=/", *program)
    assert done.status == 0, done
    assert done.stdout.startswith("ldconfig ")
    user = containers.engine.docker("inspect", "--format", "{{.Config.User}}", name)
    assert user == "1234"


@pytest.mark.parametrize("user", [LONG("root"), "12345"])
def test_packages_are_there_when_the_command_begins(
    owner: Laptop, containers: ContainerFactory, wheels: Path, user: str
) -> None:
    name = containers.name()
    where = ("--name", name, "--image", "lab/jupyter", "-v", f"{wheels}:/wheels:ro", *OFFLINE)
    command = ("python3", "-c", "import tiny; print(tiny.VALUE)")
    asked = ("-u", user, "--install", "tiny")
    done = owner.jlr("run", "lab", *where, *asked, "--", *command)
    assert (done.status, done.stdout) == (0, "42\n"), done
    assert owner.jlr("logs", name).stdout == "42\n", "pip's words are none of the job's"


def test_packages_that_cannot_be_installed_are_reported_and_the_command_never_begins(
    owner: Laptop, containers: ContainerFactory
) -> None:
    name = containers.name()
    where = ("--name", name, "--image", "lab/jupyter", "-e", "PIP_NO_INDEX=1")
    done = owner.jlr("run", "lab", *where, "--install", "no-such-thing", "--", "echo", "begun")
    assert (done.status, done.stdout) == (1, ""), done
    assert "No matching distribution found" in done.stderr
    assert "not started: its packages were not installed" in done.stderr
    inside = owner.jlr("run", "lab", "--runtime", "none", "--install", "tiny", "--", "true")
    assert inside.status == 2, inside


def test_a_naming_template_applies_to_jobs_and_either_name_finds_them(
    sshd: SSHServer, account: Account, keys: Keys, containers: ContainerFactory
) -> None:
    short = containers.name().removeprefix(containers.prefix)
    full = f"{containers.prefix}{account.name}_j{short}"
    with new_laptop(sshd, account, keys) as laptop, new_laptop(sshd, account, keys) as other:
        laptop.settle(f'[defaults]\nname = "{containers.prefix}{{user}}_{{name}}"\n')
        where = ("--name", f"j{short}", "--image", "lab/plain", "--detach")
        begun = laptop.jlr("run", "lab", *where, "--", "sh", "-c", "echo here; exit 3")
        assert (begun.status, begun.stdout) == (0, f"{full}\n"), begun
        for name in (f"j{short}", full, f"lab/j{short}", f"lab/{full}"):
            shown = whole(laptop, "job", "attach", name)
            assert (shown.returncode, shown.stdout) == (3, b"here\n"), (name, shown)
            if "/" in name:
                assert whole(other, "logs", name).stdout == b"here\n"
        again = laptop.jlr("run", "lab", *where, "--", "true")
        assert again.status == 7, again
        assert other.jlr("rm", f"lab/j{short}", "--yes").status == 0
        assert laptop.jlr("job", "attach", f"j{short}").status == 6
        elsewhere = ("--name", f"j{short}", "--runtime", "none", "--rm")
        assert laptop.jlr("run", "lab", *elsewhere, "--", "true").status == 0
