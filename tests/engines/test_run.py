"""`jlr run` takes the engine that `jlr start` would take, and its jobs are found again."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pexpect
import pytest

from tests.engines.conftest import IMAGE, SIF, EnginesHost, podman_of
from tests.engines.parts import FLAGS
from tests.jobs.parts import Leavers
from tests.lab.laptop import Laptop
from tests.lab.programs import wait_until
from tests.long import LONG
from tests.sessions.parts import started


@pytest.fixture
def job(engines_host: EnginesHost, name: str) -> Iterator[str]:
    """A name that no job has."""
    yield name
    for runtime in ("podman", "sudo podman"):
        engines_host.remove(runtime, name)


@pytest.mark.parametrize("flags", [LONG((), id="podman"), FLAGS["sudo podman"]])
def test_stdin_reaches_a_job_of_podman_byte_for_byte(
    without_docker: Laptop, job: str, flags: tuple[str, ...]
) -> None:
    odd = (*range(1, 13), *range(14, 127))  # also the keys that leave its terminals
    told = "".join(map(chr, odd)) * 999
    words = ("run", "lab", "--name", job, "--image", IMAGE, *flags, "-i", "--rm", "--", "cat")
    done = without_docker.jlr(*words, stdin=told, timeout=120)
    assert (done.status, done.stdout) == (0, told), done.stderr


def check_end(laptop: Laptop, job: str, where: tuple[str, ...], how: tuple[str, ...]) -> None:
    """Check that a job's stop ends all that it began, before it says so."""
    leavers = Leavers()
    words = (*where, "--name", job, "--detach", "--", "sh", "-c", leavers.script)
    laptop.jlr("run", "lab", *words, timeout=120).checked()
    told = "begun\n" * leavers.count
    wait_until(lambda: laptop.jlr("logs", job).stdout == told, "all that it begins")
    laptop.jlr("stop", job, *how, timeout=60).checked()
    assert leavers.left() == []
    assert laptop.jlr("rm", job, "--yes").status == 0


HOW = ((), LONG(("--force", "--yes")))


@pytest.mark.parametrize("runtime", ["podman", "apptainer", LONG("sudo podman"), LONG("docker")])
@pytest.mark.parametrize("how", HOW)
def test_stop_leaves_nothing_of_a_job(
    engines_laptop: Laptop, job: str, runtime: str, how: tuple[str, ...]
) -> None:
    image = SIF if runtime == "apptainer" else IMAGE
    check_end(engines_laptop, job, ("--image", image, *FLAGS[runtime]), how)


@pytest.mark.long
@pytest.mark.parametrize("runtime", ["apptainer", "podman", "sudo podman"])
@pytest.mark.parametrize("how", HOW)
def test_stop_leaves_nothing_of_a_job_in_a_session(
    engines_laptop: Laptop, job: str, runtime: str, how: tuple[str, ...]
) -> None:
    image = SIF if runtime == "apptainer" else IMAGE
    started(engines_laptop, job, "--image", image, *FLAGS[runtime])
    check_end(engines_laptop, f"{job}-inside", ("--in", job), how)
    assert engines_laptop.jlr("rm", job, "--force", "--yes").status == 0


def test_a_job_in_podman_keeps_its_terminal(without_docker: Laptop, job: str) -> None:
    words = ("jlr", "run", "lab", "--name", job, "--image", IMAGE, "-it", "--", "sh")
    with without_docker.terminal(*words) as terminal:
        terminal.expect(r"[#$] ")
        terminal.send("kept=3; echo is $kept\r")
        terminal.expect("is 3")
        terminal.send("\r~.")  # its client gets SIGHUP, which it must not pass on
        terminal.expect(f"left `lab/{job}` as it is")
        terminal.expect(pexpect.EOF)
        terminal.wait()
    assert terminal.exitstatus == 0
    inside = without_docker.jlr("shell", f"lab/{job}", "--", "echo", "inside", stdin="")
    assert inside.stdout == "inside\n", inside
    with without_docker.terminal("jlr", "job", "attach", job) as terminal:
        terminal.send("\rexit $((kept + 4))\r")
        terminal.expect(pexpect.EOF)
        terminal.wait()
    assert terminal.exitstatus == 7


@pytest.mark.long
def test_a_job_of_an_image_without_a_shell_runs_as_oneself_in_podman(
    engines_laptop: Laptop, engines_host: EnginesHost, job: str, tmp_path: Path
) -> None:
    shutil.copy("/sbin/ldconfig", tmp_path / "program")
    (tmp_path / "Dockerfile").write_text("FROM scratch\nCOPY program /\n")
    image, podman = f"lab/{job}:1", FLAGS["podman"]
    engines_laptop.jlr(
        "image", "build", "lab", str(tmp_path), "-t", image, *podman, timeout=120
    ).checked()
    asked = ("run", "lab", "--name", job, "--image", image, "--user", "1234", *podman)
    program = ("--", "/program", "--version")
    refused = engines_laptop.jlr(*asked, *program, timeout=120)
    assert refused.status != 0, refused
    assert "`-e HOME=FOLDER` with a folder that can be written" in refused.stderr
    done = engines_laptop.jlr(*asked, "-e", "HOME=/", *program, timeout=120).checked()
    assert done.stdout.startswith("ldconfig ")
    podman_of("podman", engines_host.account).attempt("rmi", "--force", image)
