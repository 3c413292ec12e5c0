"""Commands behind `sudo` end on the host when their user ends them or hangs up."""

from __future__ import annotations

import secrets
import signal
from collections.abc import Iterator
from contextlib import suppress
from functools import partial

import psutil
import pytest

from tests.engines.conftest import EnginesHost, sudo_host
from tests.jobs.parts import Jobs
from tests.lab import podman
from tests.lab.containers import ContainerFactory
from tests.lab.engine import Engine
from tests.lab.laptop import Laptop
from tests.lab.place import Say
from tests.lab.programs import run, wait_until
from tests.lab.remote_host import Keys, new_laptop
from tests.login.parts import at_terminal
from tests.long import LONG
from tests.mounts.parts import remember_session

PASSWORD = "correct horse"
BY_SUDO = ("--runtime", "docker", "--sudo")
LASTING = "echo begun; sleep 600"


@pytest.fixture(scope="module", params=[LONG(podman.FREELY), podman.WITH_PASSWORD])
def host(
    request: pytest.FixtureRequest, engine: Engine, keys: Keys, say: Say
) -> Iterator[EnginesHost]:
    """A host with a `sudo` that wants no password, and one with a `sudo` that does."""
    with sudo_host(request.param, PASSWORD, engine, keys, say) as made:
        yield made


@pytest.fixture(scope="module")
def owner(host: EnginesHost, keys: Keys) -> Iterator[Laptop]:
    """A laptop whose link knows the password, if there is one."""
    with new_laptop(host.server, host.account, keys) as laptop:
        words = ("--no-remember", "image", "list", "lab", *BY_SUDO)
        with at_terminal(laptop, *words) as terminal:
            if podman.WITH_PASSWORD in run("id", "-Gn", host.account.name).split():
                terminal.answers("for `sudo docker`: ", PASSWORD)
            assert terminal.ends() == 0, terminal.text
        yield laptop


@pytest.fixture
def jobs(owner: Laptop, host: EnginesHost) -> Iterator[Jobs]:
    """Jobs in containers of their own."""
    containers = ContainerFactory(host.engine, f"lab-{secrets.token_hex(4)}-")
    yield Jobs(owner, ("--image", "lab/plain", "--gpus", "none", *BY_SUDO), containers)
    containers.remove_all()


def left(host: EnginesHost, word: str) -> list[str]:
    """Return the host's processes with a word among their arguments."""
    found = []
    for process in psutil.process_iter():
        with suppress(psutil.Error):
            line = " ".join(process.cmdline())
            if process.name() in ("sudo", "docker", "script", "sh") and word in line:
                found.append(line)
    return found


def container_id_of(host: EnginesHost, name: str) -> str:
    """Return the id of a container, by which it is read and stopped."""
    return host.engine.docker("inspect", "--format", "{{.Id}}", name)


def test_a_build(owner: Laptop, host: EnginesHost, name: str) -> None:
    folder = owner.folder / "home" / name
    folder.mkdir()
    (folder / "Dockerfile").write_text("FROM lab/plain\nRUN echo begun; sleep 300\n")
    with at_terminal(owner, "image", "build", "lab", str(folder), "-t", name, *BY_SUDO) as build:
        build.sees("\nbegun\r")
        assert left(host, name)
        build.interrupts()
        assert build.ends() == 130
    wait_until(lambda: not left(host, name), "the end of docker's client")
    assert host.engine.docker("images", "--quiet", name) == ""


def test_a_job_goes_on_without_its_watcher_and_is_stopped_by_name(
    jobs: Jobs, host: EnginesHost
) -> None:
    name = jobs.name()
    jobs.begin(name, LASTING)
    container_id = container_id_of(host, name)
    attached = jobs.laptop.spawn("job", "attach", f"lab/{name}")
    assert attached.stdout is not None
    assert attached.stdout.readline() == "begun\n"
    assert left(host, container_id)
    attached.kill()
    attached.communicate()
    wait_until(lambda: not left(host, container_id), "the end of what showed it")
    assert jobs.state(name)["state"] == "running"
    assert jobs.laptop.jlr("stop", f"lab/{name}").status == 0
    assert jobs.state(name)["state"] == "ended"


def test_a_command_without_a_terminal(owner: Laptop, host: EnginesHost) -> None:
    containers = ContainerFactory(host.engine, f"lab-{secrets.token_hex(4)}-")
    try:
        inside = containers("lab/plain")
        remember_session(owner, inside.name, "sudo docker")
        shell = owner.spawn("shell", inside.name, "--", "sh", "-c", "echo begun; exec sleep 611")
        assert shell.stdout is not None
        assert shell.stdout.readline() == "begun\n"
        shell.send_signal(signal.SIGINT)
        shell.communicate(timeout=30)
        top = partial(host.engine.docker, "top", inside.name)
        wait_until(lambda: "sleep 611" not in top(), "the end of what it began")
        wait_until(lambda: not left(host, inside.name), "the end of docker's client")
    finally:
        containers.remove_all()


# The last one: a link that has nothing to keep leaves with its connection, and with the password.
def test_a_followed_log_ends_with_its_connection(jobs: Jobs, host: EnginesHost) -> None:
    name = jobs.name()
    jobs.begin(name, LASTING)
    container_id = container_id_of(host, name)
    with at_terminal(jobs.laptop, "logs", "--follow", f"lab/{name}") as log:
        log.sees("begun")
        assert left(host, container_id)
        host.server.drop_connections()
        log.ends()
    wait_until(lambda: not left(host, container_id), "the end of what showed it")
