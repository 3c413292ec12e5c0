"""`jlr run -i`: stdin without a terminal, to its end, byte for byte."""

from __future__ import annotations

import os
import subprocess

import pytest

from tests.jobs.parts import SECONDS, Jobs, at_terminal, whole
from tests.lab.laptop import PROGRAMS, Laptop
from tests.lab.programs import wait_until
from tests.lab.sshd import SSHServer

pytestmark = pytest.mark.parametrize("jobs", ["image"], indirect=True)

NOISE = os.urandom(3_000_001) + b"\x10\x11~.\n\x03\x04\x1a"  # also what leaves terminals


def given(laptop: Laptop, data: bytes, *words: str) -> subprocess.CompletedProcess[bytes]:
    """Run `jlr` with a stdin that ends."""
    return subprocess.run(
        (str(PROGRAMS / "jlr"), *words),
        input=data,
        capture_output=True,
        env=laptop.environment,
        timeout=SECONDS,
        check=False,
    )


def began(laptop: Laptop, *words: str) -> subprocess.Popen[bytes]:
    """Run `jlr` with a stdin that stays open."""
    return subprocess.Popen(
        (str(PROGRAMS / "jlr"), *words),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=laptop.environment,
    )


def test_stdin_arrives_behind_the_variables_and_ends(jobs: Jobs) -> None:
    run = ("run", "lab", *jobs.where, "--name", jobs.name(), "-i", "--rm", "-e", "ONE=it's é")
    script = 'printf "[%s]" "$ONE"; cat; echo oops >&2; exit 7'
    done = given(jobs.laptop, NOISE, *run, "--", "sh", "-c", script)
    assert done.returncode == 7, done.stderr
    assert done.stdout == "[it's é]".encode() + NOISE
    assert done.stderr.endswith(b"oops\n")
    empty = ("run", "lab", *jobs.where, "--name", jobs.name(), "-i", "--rm", "--", "wc", "-c")
    assert given(jobs.laptop, b"", *empty).stdout == b"0\n"


def test_a_job_may_end_before_its_stdin_and_answers_each_line(jobs: Jobs) -> None:
    name = jobs.name()
    run = ("run", "lab", *jobs.where, "--name", name, "-i", "--rm", "--", "sh", "-c")
    watched = began(jobs.laptop, *run, "read -r one; echo got $one; read -r two; exit $two")
    assert watched.stdin is not None
    assert watched.stdout is not None
    watched.stdin.write(b"first\n")
    watched.stdin.flush()
    assert watched.stdout.readline() == b"got first\n"
    watched.stdin.write(b"5\n")
    watched.stdin.flush()
    assert watched.wait(SECONDS) == 5
    assert not jobs.state(name)
    watched.communicate()


def test_a_detached_job_gets_its_stdin_by_attach(jobs: Jobs) -> None:
    name = jobs.name()
    run = ("run", "lab", *jobs.where, "--name", name, "-di", "--", "sh", "-c", "cat; exit 3")
    assert whole(jobs.laptop, *run).returncode == 0
    state = jobs.state(name)
    assert (state["state"], state["interactive"], state["terminal"]) == ("running", True, False)
    done = given(jobs.laptop, NOISE, "job", "attach", "-i", name)
    assert (done.returncode, done.stdout) == (3, NOISE), done.stderr
    again = whole(jobs.laptop, "job", "attach", name)
    assert (again.returncode, again.stdout) == (3, NOISE)
    plain = jobs.name()
    jobs.begin(plain, "exit 0")
    refused = given(jobs.laptop, b"", "job", "attach", "-i", plain)
    assert refused.returncode == 2
    assert f"the job `lab/{plain}` has no stdin".encode() in refused.stderr


def test_a_loss_ends_its_stdin_and_is_no_success(jobs: Jobs, sshd: SSHServer) -> None:
    name = jobs.name()
    run = ("run", "lab", *jobs.where, "--name", name, "-i", "--", "sh", "-c", "cat; echo end")
    watched = began(jobs.laptop, *run)
    assert watched.stdin is not None
    assert watched.stdout is not None
    watched.stdin.write(b"a part\n")
    watched.stdin.flush()
    assert watched.stdout.readline() == b"a part\n"
    sshd.drop_connections()
    assert watched.wait(SECONDS) == 5
    out, err = watched.communicate()
    assert out == b"end\n"
    assert f"`lab/{name}` did not get all of this stdin".encode() in err
    assert jobs.wait_over(name) == 0


def test_a_person_types_lines_and_ctrl_d_at_a_terminal(jobs: Jobs) -> None:
    name = jobs.name()
    run = ("run", "lab", *jobs.where, "--name", name, "-i", "--rm", "--", "wc", "-l")
    with at_terminal(jobs.laptop, *run) as terminal:
        terminal.wait_for(f"job lab/{name}")
        terminal.type("one\rtwo\r")
        terminal.wait_for("two")
        terminal.type("\x04")
        assert terminal.process.wait(SECONDS) == 0
        terminal.wait_for("2\r\n")


def test_stop_ends_a_job_that_waits_for_its_stdin(jobs: Jobs) -> None:
    name = jobs.name()
    run = ("run", "lab", *jobs.where, "--name", name, "-di", "--", "cat")
    assert whole(jobs.laptop, *run).returncode == 0
    assert whole(jobs.laptop, "stop", name).returncode == 0
    wait_until(lambda: jobs.state(name)["state"] == "ended", "the end of the job")
