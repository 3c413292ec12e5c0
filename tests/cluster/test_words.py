"""What is told of jobs on a cluster: why they are refused, why they wait, and how they ended."""

from __future__ import annotations

import json
import re

import pytest

from tests.cluster.parts import JUPYTER, busy, detached, job, jobs, listed, name
from tests.lab.cluster import Cluster
from tests.lab.laptop import Laptop
from tests.lab.programs import wait_until
from tests.long import LONG
from tests.sessions.parts import START_SECONDS, Session, failed, start, started


def test_a_module_that_is_unknown_is_named(zih: Laptop) -> None:
    called = name()
    refused = start(zih, "zih", called, "--slurm", "--module", "nosuch", "--cpus", "1")
    failed(refused, 1, 'module(s) are unknown:\n"nosuch"', "`module load nosuch` failed")
    assert "its last output: jlr: `module load nosuch` failed" in listed(zih, called)["detail"]


def test_the_reason_of_a_job_that_slurm_could_not_start_is_told(
    cluster: Cluster, zih: Laptop
) -> None:
    called = detached(zih, "--sbatch-arg=--hold")
    folder = f"/home/alice/.local/state/jlr/scheduled/{called}"
    cluster.run("login", "mkdir", f"{folder}/log", user="alice")
    cluster.slurm("scontrol", "release", job(zih, called)["job"])
    wait_until(lambda: job(zih, called)["state"] == "ended", "the end of the job")
    why = "Slurm says `FAILED (JobLaunchFailure)` with signal 53"
    told = f"{why}: it ended before its command began"
    assert job(zih, called)["detail"] == told
    assert why in zih.jlr("job", "list", "zih").stdout


@pytest.mark.long
def test_lists_tell_why_jobs_wait_and_when_slurm_expects_them_to_begin(
    cluster: Cluster, zih: Laptop
) -> None:
    session = name()
    start = ("start", "zih", session, "--slurm", "--no-browser")
    with busy(cluster), zih.spawn(*start) as waiting:
        called, estimate = detached(zih), "estimated start: "
        wait_until(lambda: estimate in zih.jlr("list").stdout, "the session's estimate", 60)
        shown = listed(zih, session)
        assert f"job {shown['job']} waits: {shown['reason']}; {estimate}" in shown["detail"]
        wait_until(lambda: job(zih, called)["starts"], "the job's estimate", 60)
        told = zih.jlr("job", "list", "zih").stderr
        assert f"`zih/{called}` waits: {job(zih, called)['reason']}; {estimate}" in told
        waiting.terminate()


# A laptop whose clock is three hours fast.
FAST = "import time; right = time.time; time.time = lambda: right() + 3 * 3600"


def test_time_is_told_by_the_clusters_clock(zih: Laptop, other: Laptop) -> None:
    (other.folder / "home" / "sitecustomize.py").write_text(FAST, encoding="utf-8")
    other.environment["PYTHONPATH"] = str(other.folder / "home")
    called = detached(zih, "--time", "20", "--gres", "gpu:1")
    wait_until(lambda: job(other, called)["state"] == "running", "the start of the job")
    row = next(
        line for line in other.jlr("job", "list", "zih").stdout.splitlines() if called in line
    )
    assert re.search(r"running, (19|20)m left +\d+s ", row), row
    assert re.search(r" (19|20)m", other.jlr("gpus", "zih").stdout)


def test_a_name_that_is_too_long_for_a_socket_is_refused_before_the_queue(
    cluster: Cluster, zih: Laptop
) -> None:
    called = name() + "-long" * 10
    refused = start(zih, "zih", called, *JUPYTER)
    words = (f"cannot make a unix socket for `{called}`", "longer than the 107", "--reach tcp")
    failed(refused, 2, *words)
    assert jobs(cluster, called) == []


@pytest.mark.parametrize(
    ("idle", "state", "why"),
    [
        # Jupyter looks once a minute whether it is idle.
        LONG("4s", "idle-stopped", "Jupyter ended after its idle time, and its job with it"),
        ("off", "stopped", "Jupyter was stopped from its page, and its job ended with it"),
    ],
)
def test_a_job_whose_jupyter_ended_is_restarted_with_what_it_asked_for(
    cluster: Cluster, zih: Laptop, idle: str, state: str, why: str
) -> None:
    called = name()
    asked = ("--mem", "700M", "-e", "WORD=xyzzy", "--idle-stop", idle)
    first = started(zih, called, *JUPYTER, *asked, host="zih")
    if idle == "off":
        first.ask("api/shutdown", {})
    wait_until(lambda: listed(zih, called)["state"] == state, why, 90)
    for words, status in ((("url", called), 1), (("start", "zih", called), 6)):
        failed(zih.jlr(*words), status, why, f"`jlr restart zih/{called}`")
    restarted = zih.jlr("restart", called, "--json", timeout=START_SECONDS)
    second = Session(zih, json.loads(restarted.stdout))
    assert second.port == first.port, restarted
    with second.notebook("a.ipynb") as kernel:
        assert kernel.run("__import__('os').environ['WORD']") == "'xyzzy'"
    assert "mem=700M" in cluster.slurm("scontrol", "show", "job", str(second.report["job"]))
