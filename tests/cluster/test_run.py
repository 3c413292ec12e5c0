"""`jlr run --slurm` on the lab's cluster, as a user who is not root."""

from __future__ import annotations

import json
import re
import shlex
import signal
from pathlib import Path

import pytest

from tests.cluster.parts import busy, detached, job, name, running, said_up, stand_in, until
from tests.jobs.parts import Leavers
from tests.lab.cluster import Cluster
from tests.lab.laptop import Laptop
from tests.lab.programs import PATIENCE, wait_until
from tests.long import LONG
from tests.rows import shown_commands

SILENT = "Socket timed out on send/recv operation"


def test_output_and_exit_code_are_the_jobs_own_and_no_variable_is_told(
    cluster: Cluster, zih: Laptop
) -> None:
    called = name()
    text = (
        'echo "$SECRET on $(uname -n)"; echo wrong >&2; scontrol show job "$SLURM_JOB_ID"; exit 3'
    )
    words = ("--gres", "gpu:1", "--time", "5", "--env", "SECRET=xyzzy", "--name", called)
    done = zih.jlr("run", "zih", "--slurm", *words, "--", "sh", "-c", text).checked(3)
    assert re.match(r"xyzzy on node[12]\n", done.stdout)
    assert "TimeLimit=00:05:00" in done.stdout
    assert re.search("gres[:/]gpu:1", done.stdout)
    assert "wrong" in done.stderr
    assert job(zih, called)["exit_code"] == 3
    # Slurm's accounting may keep the script and the environment.
    kept = cluster.run("controller", "sh", "-c", "cat /var/spool/slurmctld/hash.*/job.*/*")
    assert "scontrol show job" in kept
    assert "xyzzy" not in kept
    again = zih.jlr("job", "attach", called)
    assert (again.status, again.stdout) == (3, done.stdout)


def test_a_folder_is_sent_first_and_what_the_job_makes_comes_back(
    cluster: Cluster, zih: Laptop, tmp_path: Path
) -> None:
    (tmp_path / "train.sh").write_text("pwd; mkdir -p made; uname -n >made/where")
    words = ("--sync", str(tmp_path), "--back", "made/*", "--", "sh", "train.sh")
    done = zih.jlr("run", "zih", "--slurm", *words)
    assert (done.status, done.stdout) == (0, f"/home/alice/{tmp_path.name}\n"), done
    assert (tmp_path / "made" / "where").read_text() in ("node1\n", "node2\n")


def test_the_commands_of_the_guide_run(cluster: Cluster, zih: Laptop) -> None:
    """Those of docs/guides.md for jobs, with the numbers of this cluster."""
    cluster.run("login", "sh", "-c", "echo 'print(2)' >~/train.py", user="alice")
    here = {" hpc": " zih", "32G": "1G", "gpu:8": "gpu:2", "0-9": "0-3", "python ": "python3 "}
    kinds = re.compile("jlr (gpus|job list|run) hpc(?!.* torchrun )|jlr job attach$")
    for command in filter(kinds.match, shown_commands()):
        ours = command
        for theirs, own in here.items():
            ours = ours.replace(theirs, own)
        done = zih.jlr(*shlex.split(ours)[1:]).checked()
        assert "python" not in command or "2\n" in done.stdout, (ours, done)


def test_a_job_waits_for_another_and_says_why_until_it_begins(
    cluster: Cluster, zih: Laptop
) -> None:
    called = name()
    words = ("run", "zih", "--slurm", "--name", called, "--", "echo", "begun")
    with busy(cluster) as bobs, zih.spawn(*words) as started:
        assert started.stdout
        lines = iter(started.stdout.readline, "")
        told = until(lines, "waits:")
        assert "the resources that it asks for are in use" in told or "higher priority" in told
        shown = job(zih, called)
        assert shown["state"] == "waiting"
        assert shown["reason"]
        cluster.slurm("scancel", bobs)
        assert "begun\n" in list(lines)
        assert started.wait(PATIENCE) == 0


def test_ctrl_c_leaves_a_waiting_job_queued_and_stop_takes_it_out(
    cluster: Cluster, zih: Laptop
) -> None:
    called = name()
    words = ("run", "zih", "--slurm", "--name", called, "--", "echo", "begun")
    with busy(cluster), zih.spawn(*words) as started:
        assert started.stdout
        lines = iter(started.stdout.readline, "")
        until(lines, "waits:")
        started.send_signal(signal.SIGINT)
        rest = "".join(lines)
        assert started.wait(PATIENCE) == 130
        assert f"`zih/{called}` stays queued; `jlr job attach zih/{called}`" in rest
        assert job(zih, called)["state"] == "waiting"
        assert zih.jlr("stop", called).status == 0
        ended = job(zih, called)
        assert ended["state"] == "ended"
        assert ended["detail"] == "CANCELLED: it was cancelled"
        with zih.spawn(*words[:4], f"{called}-2", "--cancel-on-interrupt", *words[5:]) as other:
            assert other.stdout
            lines = iter(other.stdout.readline, "")
            until(lines, "waits:")
            other.send_signal(signal.SIGINT)
            until(lines, f"`{called}-2` ended: CANCELLED")
            assert other.wait(PATIENCE) == 130


def test_a_job_outlasts_the_laptop_and_is_found_from_another(cluster: Cluster, zih: Laptop) -> None:
    text = 'echo one; while [ ! -e "$HOME/go-on" ]; do sleep 0.2; done; echo two; exit 5'
    called = detached(zih, command=("sh", "-c", text))
    running(zih, called)
    zih.shut_down()
    cluster.run("login", "touch", "/home/alice/go-on")
    zih.run("rm", "-rf", str(zih.folder / "state"))
    (zih.folder / "state").mkdir(mode=0o700)
    done = zih.jlr("job", "attach", f"zih/{called}")
    cluster.run("login", "rm", "/home/alice/go-on")
    assert (done.status, done.stdout) == (5, "one\ntwo\n")


def test_signals_reach_the_command_and_its_exit_code_is_kept(zih: Laptop) -> None:
    """By cgroups Slurm signals the first process of a job alone."""
    called = name()
    traps = "trap 'echo interrupted' INT; trap 'echo ended; exit 5' TERM"
    text = f"{traps}; echo up; while :; do sleep 1 & wait; done"
    words = ("run", "zih", "--slurm", "--name", called, "--", "sh", "-c", text)
    with zih.spawn(*words) as started:
        assert started.stdout
        lines = iter(started.stdout.readline, "")
        until(lines, "up")
        started.send_signal(signal.SIGINT)
        until(lines, "interrupted")
        assert zih.jlr("stop", called).status == 0
        until(lines, "ended")
        assert started.wait(PATIENCE) == 5


@pytest.mark.parametrize("how", [(), LONG(("--force", "--yes"))])
@pytest.mark.parametrize("nodes", [LONG(1), 2])
def test_stop_leaves_nothing_of_a_job(
    cluster: Cluster, zih: Laptop, nodes: int, how: tuple[str, ...]
) -> None:
    if not cluster.has_cgroups:
        pytest.skip("without cgroups Slurm itself loses what left its parent")
    leavers = Leavers()
    words = ("--nodes", str(nodes), "--ntasks", str(nodes))
    tasks = ("srun",) if nodes > 1 else ()
    called = detached(zih, *words, command=(*tasks, "sh", "-c", leavers.script))
    told = "begun\n" * leavers.count * nodes
    wait_until(lambda: zih.jlr("logs", called).stdout == told, "all that it begins")
    zih.jlr("stop", called, *how, timeout=120).checked()
    assert leavers.left() == []


def test_the_ends_that_slurm_gives_are_named(cluster: Cluster, zih: Laptop) -> None:
    command = ("sh", "-c", "echo up; exec sleep 300")
    cancelled, preempted, failed = (
        detached(zih, *options, command=command)
        for options in (
            ("--gres", "gpu:1", "--sbatch-arg=--nodelist=node1"),
            ("--partition", "scavenge", "--sbatch-arg=--nodelist=node1", "--cpus", "3"),
            ("--sbatch-arg=--nodelist=node2", "--cpus", "4"),
        )
    )
    for each in (cancelled, preempted, failed):
        said_up(zih, each)
    cluster.slurm("scancel", job(zih, cancelled)["job"])
    sleeps = ("--exclusive", "--nodelist=node1", "--output=/dev/null", "--wrap=sleep 300")
    cluster.run("login", "sbatch", "--chdir=/tmp", *sleeps, user="bob")
    cluster.slurm("scontrol", "update", "nodename=node2", "state=down", "reason=test")
    done = {each: zih.jlr("job", "attach", each) for each in (cancelled, preempted, failed)}
    cluster.wait_ready()
    assert "CANCELLED: it was cancelled" in done[cancelled].stderr
    assert done[cancelled].status == 143, done[cancelled]
    assert "PREEMPTED: a job of higher priority preempted it" in done[preempted].stderr
    assert "NODE_FAIL: a node that it ran on failed" in done[failed].stderr
    assert done[failed].status != 0


def test_a_job_that_takes_too_much_memory_is_named(cluster: Cluster, zih: Laptop) -> None:
    """Slurm tells it as `0:125`, whatever the command says; a command's own failure says more."""
    take = "import time; taken = bytearray(200 << 20); time.sleep(300)"
    ends = (("", 137), (" || exit 0", 128 + 125)) if cluster.has_cgroups else (("", None),)
    for end, status in ends:
        called, text = name(), f"python3 -c '{take}'{end}"
        words = ("--mem", "50M", "--name", called, "--", "sh", "-c", text)
        done = zih.jlr("run", "zih", "--slurm", *words)
        assert done.status == status if status else done.status, done
        assert "OUT_OF_MEMORY: it used more memory than it had asked for" in done.stderr
        if status:
            told = cluster.slurm("scontrol", "show", "job", job(zih, called)["job"])
            assert "JobState=OUT_OF_MEMORY" in told
            assert "ExitCode=0:125" in told


def test_each_reason_to_wait_is_told_in_a_sentence(cluster: Cluster, zih: Laptop) -> None:
    failed = job(zih, detached(zih, command=("false",)))["job"]
    cluster.wait_state(failed, "FAILED")
    there = detached(zih, "--sbatch-arg=--nodelist=node2")
    running(zih, there)
    cluster.slurm("scontrol", "update", "nodename=node2", "state=drain", "reason=test")
    reserve = ("scontrol", "create", "reservation", "reservationname=mend", "flags=maint")
    when = ("starttime=now+600", "duration=60", "nodes=node1", "user=root")
    cluster.slurm(*reserve, *when)
    argument = "--sbatch-arg={}".format
    too_long = detached(zih, "--partition", "scavenge", "--time", "1:30:00")
    reserved = detached(zih, argument("--nodelist=node1"), "--time", "1:00:00")
    wanted = {
        detached(zih, argument("--hold")): "its owner holds it",
        detached(zih, argument("--begin=now+1hour")): "its start time has not come",
        detached(zih, argument(f"--dependency=afterok:{failed}")): "the job that it depends on "
        "did not end as it must",
        too_long: "its time is over the limit of the partition",
        reserved: "nodes that it needs are drained, down, or reserved for maintenance",
        detached(zih, argument("--nodelist=node2")): "nodes that it needs are ",
    }
    held = detached(zih, argument("--nodelist=node2"))
    cluster.slurm("scontrol", "hold", job(zih, held)["job"])
    wanted[held] = "an administrator holds it"
    before = detached(zih, argument("--nodelist=node1"), "--time", "5")
    try:
        for called, sentence in wanted.items():
            wait_until(lambda: sentence in (job(zih, called)["reason"] or ""), sentence)  # noqa: B023
        advice = {
            too_long: f"`jlr job stop zih/{too_long}` cancels it; ask for a shorter `--time`",
            reserved: "maintenance begins in ",
        }
        waiting = {called: zih.spawn("job", "attach", called) for called in advice}
        for called, waits in waiting.items():
            with waits:
                assert waits.stdout
                until(iter(waits.stdout.readline, ""), advice[called])
                waits.terminate()
        running(zih, before)
        assert job(zih, there)["state"] == "running", "a drained node ends no job"
    finally:
        cluster.slurm("scontrol", "delete", "reservationname=mend")
        cluster.slurm("scontrol", "update", "nodename=node2", "state=resume")


def test_what_slurm_refuses_leaves_nothing_and_names_the_partitions(
    cluster: Cluster, zih: Laptop
) -> None:
    called = name()
    words = ("run", "zih", "--slurm", "--partition", "nope", "--name", called)
    zih.jlr(*words, "--", "true").checked(
        1, "invalid partition specified: nope", "gpu (up to 2:00:00)"
    )
    assert called not in zih.jlr("job", "list", "zih").stdout
    session = zih.jlr("start", "zih", called, *words[2:5], "--no-browser")
    assert (session.status, "gpu (up to 2:00:00)" in session.stderr) == (1, True), session
    assert called not in zih.jlr("list", "zih").stdout
    assert zih.jlr(*words, "--dry-run", "--", "true").status == 1
    tried = zih.jlr("run", "zih", "--slurm", "--gres", "gpu:2", "--dry-run", "--", "true")
    assert "to start at" in tried.stdout
    assert called not in cluster.slurm("squeue", "--states=all", "--format=%j")


def test_a_detached_job_is_kept_until_it_was_read_once(
    cluster: Cluster, zih: Laptop, other: Laptop
) -> None:
    """Neither its log nor an attach that is cut off is the reading."""
    text = "echo kept; echo wrong >&2; head -c 300000 /dev/zero | tr '\\0' x; exit 4"
    called = detached(zih, "--rm", command=("sh", "-c", text))
    folders = ("find", "/home/alice/.local/state/jlr", "-name", called)
    assert len(cluster.run("login", *folders).splitlines()) == 1
    wait_until(lambda: job(zih, called)["state"] == "ended", "the end of the job")
    assert zih.jlr("logs", called).stdout.startswith("kept\n")
    with zih.spawn("job", "attach", called) as cut_off:
        assert cut_off.stdout
        # Both streams are in one here, in any order.
        assert "kept\n" in (cut_off.stdout.readline(), cut_off.stdout.readline())
        cut_off.kill()
    assert job(zih, called)["exit_code"] == 4
    read = other.jlr("job", "attach", f"zih/{called}")
    assert (read.status, read.stdout) == (4, "kept\n" + 300_000 * "x"), read
    assert "wrong\n" in read.stderr
    for laptop in (zih, other):
        assert laptop.jlr("job", "attach", f"zih/{called}").status == 6
    assert called not in zih.jlr("job", "list", "zih").stdout
    assert cluster.run("login", *folders) == ""


def test_an_array_is_a_job_for_each_index(cluster: Cluster, zih: Laptop) -> None:
    called = name()
    words = ("run", "zih", "--slurm", "--name", called)
    text = 'echo "here is $SLURM_ARRAY_TASK_ID"; exit "$SLURM_ARRAY_TASK_ID"'
    done = zih.jlr(*words, "--array", "0,2-4:2", "--", "sh", "-c", text)
    assert done.stdout.splitlines() == ["here is 0", "here is 2", "here is 4"], done
    assert done.status == 4
    waiting = zih.jlr(*words, "--detach", "--array", "6-9%1", "--", "sleep", "300")
    names = [f"{called}-{index}" for index in range(6, 10)]
    assert waiting.stdout.splitlines() == names
    running(zih, names[0])
    assert job(zih, names[1])["reason"] == "its array runs as many jobs at a time as it may"
    zih.jlr("stop", names[0], names[1]).checked()
    running(zih, names[2])
    assert [job(zih, each)["state"] for each in names] == ["ended", "ended", "running", "waiting"]
    taken = zih.jlr(*words, "--array", "8-10", "--", "true")
    assert (taken.status, "already exists" in taken.stderr) == (7, True), taken
    listed = cluster.slurm("squeue", "--noheader", "--array", "--format=%i")
    assert len(listed.splitlines()) == 2, listed


def test_gpus_are_those_of_the_partitions_with_their_holders(cluster: Cluster, zih: Laptop) -> None:
    called = detached(zih, "--gres", "gpu:2")
    running(zih, called)
    told = json.loads(zih.jlr("gpus", "zih", "--json").stdout)
    assert [(n["partition"], n["gpu"], n["free"], n["total"]) for n in told["nodes"]] == [
        ("gpu", "a100", 2, 4),
        ("scavenge", "a100", 2, 4),
    ]
    [held] = told["jobs"]
    assert (held["user"], held["gpus"], held["job"]) == ("alice", 2, job(zih, called)["job"])
    assert told["hidden"] == 0
    with zih.spawn("gpus", "zih", "--watch", "--json") as watching:
        assert watching.stdout
        assert json.loads(watching.stdout.readline())["nodes"] == told["nodes"]
        watching.send_signal(signal.SIGINT)
        assert watching.wait(PATIENCE) == 0


@pytest.mark.parametrize(
    "first",
    [
        pytest.param('REAL "$@" >/dev/null || exit', id="of a job that is there"),
        LONG('[ ! -e /tmp/NAME ] || exec REAL "$@"; touch /tmp/NAME', id="of one that is not"),
    ],
)
def test_a_lost_reply_of_sbatch_gives_one_job(cluster: Cluster, zih: Laptop, first: str) -> None:
    """`sbatch` says that it got no answer, as with a busy slurmctld."""
    called = name()
    said = f"sbatch: error: Batch job submission failed: {SILENT}"
    text = f"{first.replace('NAME', called)}\necho '{said}' >&2\nexit 1\n"
    with stand_in(cluster, "login", "sbatch", text):
        done = zih.jlr("run", "zih", "--slurm", "--name", called, "--", "echo", "once")
    assert (done.status, done.stdout) == (0, "once\n")
    assert "looking again for the job in 2 s" in done.stderr
    names = cluster.slurm("squeue", "--states=all", "--format=%j").split()
    assert sum(each.startswith(f"{called}.") for each in names) == 1
