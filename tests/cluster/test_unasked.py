"""A Slurm that does not answer, and a home that cannot be written to: unknown is never no."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import pytest

from tests.cluster.conftest import cancelled_jobs
from tests.cluster.parts import busy, until
from tests.cluster.test_run import job, name
from tests.cluster.test_sessions import jobs, on_node, user
from tests.lab.cluster import Cluster
from tests.lab.laptop import Laptop
from tests.lab.programs import wait_until
from tests.sessions.parts import failed, started


@pytest.fixture
def zih(cluster: Cluster, file_zih: Laptop) -> Iterator[Laptop]:
    with cancelled_jobs(cluster):
        yield file_zih


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
        failed(zih.jlr("logs", never), 6, "there is no log", f"`jlr status zih/{never}`")
        waiting.terminate()


def test_what_a_site_hides_is_not_told_as_silence(cluster: Cluster, zih: Laptop) -> None:
    settings = "/etc/slurm/slurm.conf"
    hide = f"cp {settings} /root; echo PrivateData=nodes,jobs >>{settings}"
    cluster.run("controller", "sh", "-c", f"{hide}; scontrol reconfigure")
    listed = (*user("alice"), "sinfo --Node")
    wait_until(lambda: not cluster.try_run("login", *listed).stdout, "hidden nodes")
    try:
        told = ("Slurm does not show you this", "Access/permission denied", "`PrivateData`")
        failed(zih.jlr("gpus", "zih"), 1, *told)
    finally:
        cluster.run(
            "controller", "sh", "-c", f"mv /root/slurm.conf {settings}; scontrol reconfigure"
        )
        cluster.wait_ready()
