"""A start that fails, or that Ctrl-C ends, leaves everything as it was before it."""

from __future__ import annotations

import shutil
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from jlremote.hosts.rollback import UNDISTURBED_SECONDS
from tests.conftest import SSHServerFactory
from tests.lab.accounts import Account
from tests.lab.containers import Container, ContainerFactory
from tests.lab.disks import state
from tests.lab.engine import Engine
from tests.lab.laptop import Laptop
from tests.lab.ports import free_port, held, is_free
from tests.lab.programs import PATIENCE, SYSTEM_PATH, wait_until
from tests.lab.remote_host import Keys
from tests.link.servers import start_inside
from tests.outages.parts import within
from tests.sessions.parts import failed, start, started


@contextmanager
def unwritable_record(laptop: Laptop, name: str) -> Iterator[None]:
    """Let a session's record be none that can be read or written."""
    laptop.jlr("list")  # makes the folder
    record = state(laptop) / "jlr" / "sessions" / f"lab+{name}.json"
    aside = laptop.folder / "aside"
    if record.exists():
        record.rename(aside)
    record.mkdir()
    try:
        yield
    finally:
        record.rmdir()
        if aside.exists():
            aside.rename(record)


@pytest.mark.parametrize(
    ("option", "what"),
    [("--python", "there is no Python"), ("--conda-env", "there is no conda environment")],
)
def test_a_python_that_a_container_does_not_have_is_named(
    laptop: Laptop, container: ContainerFactory, option: str, what: str
) -> None:
    there, new = container().name, container.name()
    refused = start(laptop, "lab", there, option, "/nope")
    failed(refused, 6, f"{what} `/nope` in the container `{there}`")
    refused = start(laptop, "lab", new, "--image", "lab/jupyter", option, "/nope")
    failed(refused, 6, f"{what} `/nope` in the image `lab/jupyter`")
    assert container.remove_all() == [there]


def test_a_start_whose_record_cannot_be_written_leaves_the_forward_as_it_was(
    laptop: Laptop, here: Container
) -> None:
    session = started(laptop, here)
    born = session.born()
    with unwritable_record(laptop, here.name):
        with within(15):
            again = start(laptop, "lab", here.name)
        failed(again, 1, "cannot write", f"lab+{here.name}.json")
        assert session.born() == born
    assert laptop.jlr("url").stdout.strip() == session.url


def test_a_start_that_refuses_a_new_server_keeps_the_old_forward(
    laptop: Laptop, container: ContainerFactory
) -> None:
    here = container()
    start_inside(here, 8888)
    session = started(laptop, here)
    here.execute("sh", "-c", f"kill -9 {session.ask('api/status')['pid']}")
    open_to_all = ("--allow-root", "--no-browser", "--ip=0.0.0.0", "--IdentityProvider.token=")
    here.engine.docker("exec", "--detach", here.name, "jupyter", "lab", *open_to_all)
    look = "ls /root/.local/share/jupyter/runtime/jpserver-*.json 2>/dev/null; :"
    wait_until(lambda: here.execute("sh", "-c", look) != "", "the open server", timeout=90)
    wait_until(lambda: laptop.jlr("list", here.name).stdout.count("jupyter-dead") == 1, "the end")
    failed(start(laptop, "lab", here.name), 1, "neither token nor password")
    assert not is_free(session.port)
    assert "jupyter-dead" in laptop.jlr("list", here.name).stdout


@pytest.fixture
def slow_engine(
    laptop: Laptop, engine: Engine, another_sshd: SSHServerFactory, account: Account, keys: Keys
) -> Iterator[Path]:
    """Let `docker rm` hang on the host `slow`; give the file that it makes before."""
    folder = account.home / "slow-engine"
    folder.mkdir()
    shutil.chown(folder, account.name)
    mark, program = folder / "mark", folder / "docker"
    docker = shutil.which("docker", path=SYSTEM_PATH)
    hang = f'[ "$1" != rm ] || {{ : >{mark}; exec sleep 600; }}; exec {docker} "$@"'
    program.write_text(f"#!/bin/sh\n{hang}\n")
    program.chmod(0o755)
    settings = f'"PATH={folder}:{SYSTEM_PATH}" "DOCKER_HOST={engine.url}"'
    laptop.add_host("slow", another_sshd(f"SetEnv {settings}"), account, key=keys.private)
    yield mark
    shutil.rmtree(folder)


def test_an_abandoned_launch_leaves_that_of_another_laptop_alone(
    laptop: Laptop, other_laptop: Laptop, container: ContainerFactory, tmp_path: Path
) -> None:
    """Both find no server, and the one that begins later has it first."""
    uptime = tmp_path / "uptime"  # by which a launch's age is told
    uptime.write_text(Path("/proc/uptime").read_text())
    options = ("--env", "LAB_DELAY=600", "--volume", f"{uptime}:/proc/uptime:ro")
    here = container("lab/slow", options=options)
    program, launched = "/opt/slow/bin/jupyter-lab", f"/tmp/jlr-0/{here.name}/pid"
    taken = free_port()
    words = ("start", "lab", here.name, "--port", str(taken), "--no-browser")
    with laptop.spawn(*words) as starting:
        look = f"ls {launched}; :"
        wait_until(lambda: here.execute("sh", "-c", look) != "", "the first launch")
        with held(taken):
            here.execute("sed", "-i", "/sleep/d", program)
            uptime.write_text(f"{float(uptime.read_text().split()[0]) + 600} 0\n")
            session = started(other_laptop, here)
            born = session.born()
            assert starting.wait(timeout=60) == 7
    assert session.born() == born


def test_another_ctrl_c_ends_a_rollback_that_hangs(
    laptop: Laptop, container: ContainerFactory, slow_engine: Path
) -> None:
    name = container.name()
    words = ("--image", "lab/slow", "--env", "LAB_DELAY=600", "--runtime", "docker")
    with laptop.spawn("start", "slow", name, *words) as starting:
        launched = ("exec", name, "test", "-s", f"/tmp/jlr-0/{name}/pid")
        engine = container.engine
        wait_until(lambda: engine.try_docker(*launched).status == 0, "the launch", timeout=60)
        starting.send_signal(signal.SIGINT)
        wait_until(slow_engine.exists, "the removal")
        time.sleep(UNDISTURBED_SECONDS)
        starting.send_signal(signal.SIGINT)
        assert starting.wait(timeout=PATIENCE) == 130
    container.remove_all()
