"""Jobs that are killed, misnamed or watched by closed streams."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

from tests.jobs.conftest import one_place
from tests.jobs.parts import Jobs, whole
from tests.lab.laptop import PROGRAMS, Laptop


def test_a_job_ends_as_in_any_shell(jobs: Jobs) -> None:
    name = jobs.name()
    assert jobs.run(name, "sh", "-c", "kill -9 $$").returncode == 128 + 9
    assert whole(jobs.laptop, "logs", name).stderr == b"", "the exit code says it"
    name = jobs.name()
    assert jobs.run(name, "no-such-command", "a").returncode == 127
    assert b"no-such-command" in whole(jobs.laptop, "logs", name).stderr
    assert jobs.run(jobs.name(), "/etc/passwd").returncode == 126


def test_a_line_without_an_end_comes_whole(jobs: Jobs) -> None:
    long = "yes 123456789 | tr -d '\\n' | head -c 5000000"
    shown = jobs.run(jobs.name(), "sh", "-c", long, options=("--rm",))
    assert shown.stdout == b"123456789" * 555555 + b"12345"
    # Docker often ends a followed log before it.
    for _ in range(2 if "--image" in jobs.where else 1):
        shown = jobs.run(jobs.name(), "sh", "-c", "printf 'a\\nb'; exit 5", options=("--rm",))
        assert (shown.returncode, shown.stdout) == (5, b"a\nb")


@one_place
def test_output_that_cannot_be_written_is_reported_and_the_job_goes_on(jobs: Jobs) -> None:
    name = jobs.name()
    words = ("run", "lab", *jobs.where, "--name", name, "--", "sh", "-c", "echo begun; sleep 1")
    with Path("/dev/full").open("wb") as full:
        done = subprocess.run(
            (str(PROGRAMS / "jlr"), *words),
            stdin=subprocess.DEVNULL,
            stdout=full,
            stderr=subprocess.PIPE,
            env=jobs.laptop.environment,
            timeout=60,
            check=False,
        )
    assert done.returncode == 1
    assert b"error: cannot write the output: no space left on device" in done.stderr
    assert f"jlr job attach lab/{name}".encode() in done.stderr
    assert jobs.wait_over(name) == 0


def test_streams_that_were_closed_are_no_failure(owner: Laptop) -> None:
    def close() -> None:
        for number in (0, 1):
            os.close(number)

    command = ("run", "lab", "--runtime", "none", "--rm", "--", "sh", "-c", "echo gone; exit 5")
    done = subprocess.run(
        (str(PROGRAMS / "jlr"), *command),
        stderr=subprocess.PIPE,
        env=owner.environment,
        preexec_fn=close,
        timeout=60,
        check=False,
    )
    assert done.returncode == 5, done
    assert b"error" not in done.stderr
