"""A Slurm that does not answer, and a home that cannot be written to: unknown is never no."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import pytest

from tests.cluster.conftest import cancelled_jobs
from tests.cluster.parts import (
    JUPYTER,
    busy,
    detached,
    job,
    jobs,
    listed,
    name,
    on_node,
    running,
    said_up,
    stand_in,
    until,
)
from tests.lab.cluster import Cluster
from tests.lab.laptop import Laptop
from tests.lab.programs import load, wait_until
from tests.long import LONG
from tests.sessions.parts import failed, started


@contextmanager
def profile(cluster: Cluster, text: str) -> Iterator[None]:
    """Give alice's jobs, and not her logins, lines in a startup file."""
    place = "/home/alice/.bash_profile"
    lines = f'if [ -n "$SLURM_JOB_ID" ]; then {text}; fi'
    cluster.run("login", "sh", "-c", f'printf "%s\\n" "$1" >{place}', "sh", lines, user="alice")
    try:
        yield
    finally:
        cluster.run("login", "rm", place)


def test_a_job_that_a_startup_file_ends_is_waited_for_no_longer(
    cluster: Cluster, zih: Laptop
) -> None:
    """Also by a start that joins it while it runs, in Slurm's words, without its command."""
    told = "says `FAILED` with exit code 3: it ended before its command began"
    said, session = "this node has no quota", name()
    wait = "while [ ! -e ~/go ]; do sleep 0.2; done"
    with profile(cluster, f"{wait}; echo {said}; exit 3"), ThreadPoolExecutor() as pool:
        words = ("start", "zih", session, *on_node(1), "--no-browser")
        first = pool.submit(zih.jlr, *words, timeout=90)
        wait_until(lambda: jobs(cluster, session) == ["RUNNING"], "the job")
        joined = pool.submit(zih.jlr, *words, timeout=90)
        called = name()
        job_ = pool.submit(zih.jlr, "run", "zih", "--slurm", "--name", called, "--", "true")
        wait_until(lambda: jobs(cluster, called) == ["RUNNING"], "the other job")
        cluster.run("login", "touch", "/home/alice/go", user="alice")
        for done in (first, joined, job_):
            failed(done.result(), 1, told, said)
    cluster.run("login", "rm", "/home/alice/go")
    assert said in zih.jlr("logs", session).stdout
    assert job(zih, called)["state"] == "ended"


def test_the_log_of_a_session_is_read_in_the_home_also_after_its_job_and_without_its_node(
    cluster: Cluster, zih: Laptop
) -> None:
    """Without slurmctld no step gets to the second node."""
    session = started(zih, name(), *on_node(2), host="zih")
    with cluster.without_controller():
        assert "ServerApp" in zih.jlr("logs", session.name).stdout
    assert zih.jlr("stop", session.name, "--force", "--yes").status == 0
    assert "ServerApp" in zih.jlr("logs", session.name).stdout
    never = name()
    with busy(cluster), zih.spawn("start", "zih", never, *on_node(1), "--no-browser") as waiting:
        assert waiting.stdout
        until(iter(waiting.stdout.readline, ""), "waits:")
        failed(zih.jlr("logs", never), 6, "there is no log", f"`jlr list zih/{never}`")
        waiting.terminate()


@contextmanager
def silent(cluster: Cluster, how: str) -> Iterator[None]:
    """Let `squeue` answer so for the time of a `with` block, and have limits be two seconds."""
    shorter = stand_in(cluster, "login", "timeout", 'shift; exec REAL 2 "$@"')
    with shorter, stand_in(cluster, "login", "squeue", how):
        yield


@pytest.fixture(scope="module")
def both(cluster: Cluster, file_zih: Laptop) -> Iterator[tuple[str, str]]:
    """A session and a job that run, which no test may end."""
    with cancelled_jobs(cluster):
        session = started(file_zih, name(), *on_node(1), "--time", "30", host="zih")
        called = detached(file_zih, command=("sh", "-c", "echo up; sleep 600"))
        said_up(file_zih, called)
        yield session.name, called


@pytest.fixture
def laptop(file_zih: Laptop) -> Laptop:
    return file_zih


SILENCES = {
    "hangs": "exec sleep 60",
    "is empty": "exit 0",
    "exits 1": "exit 1",
    "prints a banner": "echo 'Maintenance on Monday'",
}
# A `squeue` that hangs is ended by `timeout`, and then is one that fails.
every_silence = pytest.mark.parametrize(
    "how", ["exits 1", LONG("hangs"), LONG("is empty"), LONG("prints a banner")]
)


@every_silence
def test_without_an_answer_nothing_is_ended_deleted_or_doubled(
    cluster: Cluster, laptop: Laptop, both: tuple[str, str], how: str
) -> None:
    session, called = both
    with silent(cluster, SILENCES[how]):
        shown = listed(laptop, session, "zih")
        assert (shown["state"], "Slurm does not answer" in shown["detail"]) == ("up", True)
        status = laptop.jlr("list", session).stdout
        assert "Slurm does not answer" in status
        assert job(laptop, called)["state"] == "unknown"
        cleaned = laptop.jlr("job", "list", "zih", "--clean", "--yes")
        assert (cleaned.status, f"deleted zih/{called}" in cleaned.stderr) == (0, False), cleaned
        for words in ((), JUPYTER):
            assert started(laptop, session, *words, host="zih").url == shown["url"]
        again = laptop.jlr("run", "zih", "--slurm", "--name", called, "--", "true")
        failed(again, 7, f"a job `{called}` already exists")
        first = laptop.jlr("start", session, "--renew", "--json")
        if first.status == 0:  # only of the first silence
            assert json.loads(first.stdout)["name"] == session
        failed(laptop.jlr("start", session, "--renew"), 7, "follows job")
    assert sorted(jobs(cluster, session)) == ["PENDING", "RUNNING"]
    assert jobs(cluster, called) == ["RUNNING"]
    assert laptop.jlr("logs", called).stdout == "up\n"
    assert job(laptop, called)["state"] == "running"


@every_silence
def test_a_stop_without_an_answer_ends_what_it_says_that_it_ended(
    cluster: Cluster, laptop: Laptop, how: str
) -> None:
    """The job writes down its own end."""
    called = detached(laptop, command=("sh", "-c", "echo up; sleep 600"))
    said_up(laptop, called)
    with silent(cluster, SILENCES[how]):
        stopped = laptop.jlr("stop", called)
    assert (stopped.status, "stopped the job" in str(stopped)) == (0, True), stopped
    wait_until(lambda: jobs(cluster, called) == ["CANCELLED"], "its end")


def test_a_slurmctld_that_is_silent_is_told_early_and_named(
    cluster: Cluster, laptop: Laptop, both: tuple[str, str]
) -> None:
    """With Slurm's own limits, which let each question wait for ten seconds and longer."""
    session, called = both
    cluster.run("controller", "pkill", "-STOP", "slurmctld")
    try:
        began = time.monotonic()
        asked = ("list", "zih"), ("list", session), ("run", "zih", "--slurm", "--", "true")
        for words, asking in [(words, laptop.spawn(*words)) for words in asked]:
            with asking:
                assert asking.stdout
                until(iter(asking.stdout.readline, ""), "Slurm does not answer on `zih` so far")
                assert time.monotonic() - began < 9 * load(), (
                    "three seconds, on a machine with much to do"
                )
                if words[0] == "list":
                    assert "Slurm does not answer: " in asking.stdout.read()
                asking.kill()
    finally:
        cluster.run("controller", "pkill", "-CONT", "slurmctld")
        cluster.wait_ready()
    running(laptop, called)
