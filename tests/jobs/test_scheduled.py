"""Jobs of a scheduler: their scripts, run by a real shell beside an `sbatch` that keeps the job."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pytest

from jlremote.jobs.scheduled_jobs import UNKNOWN, ScheduledJobs
from jlremote.jobs.scheduled_script import ScheduledPlan
from jlremote.place.clusters.scheduler import Resources
from jlremote.place.host.kept_jobs import NO_FOLDER, TAKEN
from tests.lab.programs import wait_until

JOBS = ScheduledJobs()
HEAD = "JOBID\x1fNAME\x1fSTATE\x1fREASON\x1fSTART_TIME\x1fEND_TIME\x1fNODELIST"


class Cluster:
    """A home, and Slurm's commands that answer as they are told."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.programs = folder / "bin"
        self.programs.mkdir()
        self.submit_answers("12")
        self.program("squeue", f"printf '%s\\n' '{HEAD}'")
        self.program("sacct", "exit 1")

    def program(self, name: str, text: str) -> None:
        """Make a command of Slurm's."""
        (self.programs / name).write_text(f"#!/bin/sh\n{text}\n")
        (self.programs / name).chmod(0o755)

    def submit_answers(self, answer: str, status: int = 0) -> None:
        """Let `sbatch` keep the job, count it and answer so."""
        keep = f"cat >{self.folder}/job; echo >>{self.folder}/submissions"
        self.program("sbatch", f"{keep}; echo '{answer}'; exit {status}")

    @property
    def submissions(self) -> int:
        """How often `sbatch` was called."""
        counted = self.folder / "submissions"
        return len(counted.read_text()) if counted.exists() else 0

    def run(self, script: str, **variables: str) -> subprocess.CompletedProcess[str]:
        """Run a script as the user."""
        path = f"{self.programs}:{os.environ['PATH']}"
        surroundings = {"HOME": str(self.folder), "PATH": path, **variables}
        return subprocess.run(
            ("sh", "-s"),
            input=script,
            env=surroundings,
            capture_output=True,
            text=True,
            check=False,
        )

    def queue(self, row: str) -> None:
        """Let `squeue` answer with its heading and a row."""
        self.program("squeue", f"printf '%s\\n' '{HEAD}' '{row}'")

    def watching(self, script: str) -> subprocess.CompletedProcess[bytes]:
        """Run a script that ends with its stdin, which stays open, to its end."""
        with subprocess.Popen(
            ("sh", "-c", script),
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            env={"HOME": str(self.folder), "PATH": f"{self.programs}:{os.environ['PATH']}"},
        ) as process:
            return subprocess.CompletedProcess(script, process.wait(60))

    def age(self, name: str) -> None:
        """Let the submission of a job be long ago."""
        os.utime(self.folder / f".local/state/jlr/scheduled/{name}/mark", (0, 0))

    def run_job(self, number: int, **variables: str) -> subprocess.CompletedProcess[str]:
        """Run the kept job, as a node would."""
        return self.run(f"bash {self.folder}/job", SLURM_JOB_ID=str(number), **variables)


@pytest.fixture
def cluster(tmp_path: Path) -> Cluster:
    return Cluster(tmp_path)


def plan(*argv: str, variables: str = "") -> ScheduledPlan:
    return ScheduledPlan("t", "abc", argv, " ".join(argv), Resources(), variables=variables)


@pytest.fixture
def small_home(cluster: Cluster) -> Iterator[Path]:
    """The place of the user's files, as a file system of its own."""
    place = cluster.folder / ".local"
    place.mkdir()
    if subprocess.run(("mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", place)).returncode:
        pytest.skip("this machine lets nobody mount a tmpfs")
    yield place
    subprocess.run(("umount", place), check=True)


def remount(place: Path, options: str) -> None:
    subprocess.run(("mount", "-o", f"remount,{options}", place), check=True)


def fill(place: Path) -> None:
    """Leave no byte of a file system."""
    with suppress(OSError), (place / "full").open("wb", 0) as file:
        while file.write(bytes(1 << 10)):
            pass


def no_inodes(place: Path) -> None:
    """Leave no inode but that of one folder."""
    (place / "state/jlr/scheduled").mkdir(parents=True)
    remount(place, "nr_inodes=6")


def read_only(place: Path) -> None:
    remount(place, "ro")


UNWRITABLE = {
    "read-only": (read_only, "Read-only file system"),
    "full": (fill, "No space left on device"),
    "no inodes": (no_inodes, "No space left on device"),
}


@pytest.mark.parametrize("indices", [(), (1, 2)], ids=["job", "array"])
@pytest.mark.parametrize("how", UNWRITABLE)
def test_a_home_that_cannot_be_written_to_is_not_told_as_a_taken_name(
    cluster: Cluster, small_home: Path, how: str, indices: tuple[int, ...]
) -> None:
    make, why = UNWRITABLE[how]
    make(small_home)
    wanted = replace(plan("true"), indices=indices)
    refused = cluster.run(JOBS.submit(wanted))
    assert (refused.returncode, cluster.submissions) == (NO_FOLDER, 0), refused
    assert refused.stdout == str(small_home / "state/jlr/scheduled")
    assert why in refused.stderr
    remount(small_home, "rw,size=1m,nr_inodes=100")
    assert not list(small_home.rglob("t*")), "nothing of it is left that would take the name"
    assert cluster.run(JOBS.submit(wanted)).returncode == 0


def test_a_node_that_cannot_write_in_the_home_does_not_take_the_job_for_anothers(
    cluster: Cluster, small_home: Path
) -> None:
    cluster.run(JOBS.submit(plan("touch", f"{cluster.folder}/ran")))
    read_only(small_home)
    refused = cluster.run_job(12)
    assert refused.returncode == NO_FOLDER
    assert "Read-only file system" in refused.stderr
    assert not (cluster.folder / "ran").exists()
    remount(small_home, "rw")
    assert cluster.run_job(12).returncode == 0


def test_a_stop_in_a_full_home_says_why_it_sees_no_end(cluster: Cluster, small_home: Path) -> None:
    cluster.run(JOBS.submit(plan("true")))
    fill(small_home)
    cluster.queue("12\x1ft.jlrabc\x1fCANCELLED\x1fNone\x1f5\x1f6\x1f")
    cluster.program("scancel", f"touch {cluster.folder}/cancelled")
    cluster.program("sleep", "true")
    late = cluster.run(JOBS.stop("t", force=False))
    assert late.returncode == 1
    assert "its end cannot be seen: nothing can be written in " in late.stderr
    assert (cluster.folder / "cancelled").exists()
    for _ in range(2):  # not even the scheduler's word can be kept, and an empty one is none
        [job] = JOBS.read(cluster.run(JOBS.tell("t")).stdout)
        assert (job.state, job.detail) == ("ended", "CANCELLED: it was cancelled")


def test_what_modules_change_is_kept_for_later_commands_and_no_secret(cluster: Cluster) -> None:
    module = """module() { f() { :; }; export -f f; export ODD="it's\n$2" PATH=/modules:$PATH; }"""
    secret = plan("true", variables=f"{module}\nexport SECRET='a\nb'\n")
    cluster.run(JOBS.submit(replace(secret, modules=("cuda",))))
    assert cluster.run_job(12).returncode == 0
    kept = cluster.folder / ".local/state/jlr/scheduled/t/modules"
    told = cluster.run(f'. {kept}; echo "$ODD ${{PATH%%:*}}"')
    assert (told.stdout, told.stderr) == ("it's\ncuda /modules\n", "")
    assert sorted(re.findall("^export (\\w+)", kept.read_text(), re.MULTILINE)) == ["ODD", "PATH"]


@pytest.mark.parametrize(("signal", "code"), [("TERM", 143), ("INT", 130)])
def test_a_signal_that_comes_before_the_command_ends_the_job(
    signal: str, code: int, cluster: Cluster
) -> None:
    cluster.run(JOBS.submit(plan("echo", "run", variables=f"kill -{signal} $$\n")))
    assert cluster.run_job(12).returncode == code
    [job] = JOBS.read(cluster.run(JOBS.tell()).stdout)
    assert (job.state, job.exit_code) == ("ended", code)
    assert cluster.run(JOBS.rest("t", 0, 0)).stdout == ""


def test_after_a_lost_answer_nothing_is_submitted_while_slurm_is_silent(cluster: Cluster) -> None:
    cluster.submit_answers("", status=1)
    cluster.run(JOBS.submit(plan("true")))
    cluster.program("squeue", "echo 'Unable to contact slurm controller' >&2; exit 0")
    assert cluster.run(JOBS.submit(plan("true"))).returncode == UNKNOWN
    assert cluster.submissions == 1
    cluster.program("squeue", "printf 'JOBID\\n12\\n'")
    assert cluster.run(JOBS.submit(plan("true"))).stdout == "12\n"
    assert cluster.submissions == 1


def test_a_submission_that_was_cut_off_is_found_by_its_mark_or_given_up(cluster: Cluster) -> None:
    def told() -> tuple[str, str | None]:
        [job] = JOBS.read(cluster.run(JOBS.tell()).stdout)
        return job.state, job.job

    cluster.submit_answers("", status=1)
    cluster.run(JOBS.submit(plan("true")))
    assert told() == ("unknown", None)
    cluster.age("t")
    assert told() == ("lost", None)
    cluster.queue("12\x1ft.jlrabc\x1fRUNNING\x1fNone\x1f5\x1f6\x1fnode1")
    told()
    assert told() == ("running", "12")
    assert cluster.submissions == 1


def test_a_job_that_is_put_back_waits_and_has_its_variables_again(cluster: Cluster) -> None:
    folder = cluster.folder / ".local/state/jlr/scheduled/t"
    says = "slurmstepd: error: *** JOB 12 ON node1 CANCELLED AT 2026-11-22T23:08:56"
    text = f"""echo "$WORD" >>{cluster.folder}/runs
case $(wc -l <{cluster.folder}/runs) in
1) echo '{says} DUE TO JOB REQUEUE ***' >>{folder}/log; exit 143;;
esac"""
    wanted = replace(
        plan("sh", "-c", text, variables="export WORD=xyzzy\n"),
        resources=Resources(arguments=("--requeue",)),
    )
    cluster.queue("12\x1ft.jlrabc\x1fPENDING\x1fBeginTime\x1f5\x1f6\x1f")
    cluster.run(JOBS.submit(wanted))
    (folder / "log").touch()
    cluster.run_job(12)
    [job] = JOBS.read(cluster.run(JOBS.tell("t")).stdout)
    assert (job.state, job.reason) == ("waiting", "its start time has not come")
    assert cluster.run_job(12).returncode == 0, "its log may still have the old message"
    [job] = JOBS.read(cluster.run(JOBS.tell("t")).stdout)
    assert (job.state, job.exit_code, job.detail) == ("ended", 0, None)
    assert (cluster.folder / "runs").read_text() == "xyzzy\n" * 2
    assert not list(cluster.folder.rglob(".variables"))


def test_of_two_jobs_of_one_submission_only_one_runs(cluster: Cluster) -> None:
    cluster.run(JOBS.submit(plan("sh", "-c", f"echo >>{cluster.folder}/runs")))
    for number in (12, 13):
        cluster.run_job(number)
    assert (cluster.folder / "runs").read_text() == "\n"
    cluster.run_job(12)
    assert (cluster.folder / "runs").read_text() == "\n\n", "a requeued job keeps its number"


def test_an_array_with_one_taken_name_is_refused_and_taken_back_whole(cluster: Cluster) -> None:
    cluster.run(JOBS.submit(replace(plan("true"), name="t-3", mark="def")))
    cluster.program("squeue", "printf 'JOBID\\n'")
    array = replace(plan("true"), indices=(1, 3, 5))
    assert cluster.run(JOBS.submit(array)).returncode == TAKEN
    cluster.run(JOBS.take_back(array))
    assert cluster.submissions == 1
    assert [job.name for job in JOBS.read(cluster.run(JOBS.tell()).stdout)] == ["t-3"]


def test_a_job_that_outlived_its_folder_ends_no_other_of_its_name(cluster: Cluster) -> None:
    wait = f"echo >{cluster.folder}/begun; while [ ! -e {cluster.folder}/go ]; do sleep 0.1; done"
    cluster.run(JOBS.submit(plan("sh", "-c", f"{wait}; exit 9")))
    first = (cluster.folder / "job").rename(cluster.folder / "first")
    with ThreadPoolExecutor() as pool:
        orphan = pool.submit(cluster.run, f"bash {first}", SLURM_JOB_ID="12")
        wait_until((cluster.folder / "begun").exists, "the first job")
        cluster.run(JOBS.remove("t"))
        cluster.submit_answers("13")
        second = replace(plan("true", variables="export WORD=a\n"), mark="def")
        assert cluster.run(JOBS.submit(second)).stdout == "13\n"
        (cluster.folder / "go").touch()
        assert orphan.result().returncode == 9
    cluster.queue("13\x1ft.jlrdef\x1fRUNNING\x1fNone\x1f5\x1f6\x1fn1")
    [job] = JOBS.read(cluster.run(JOBS.tell("t")).stdout)
    assert (job.job, job.state) == ("13", "running")
    assert list(cluster.folder.rglob(".variables")), "the second job has still to read them"


def test_a_late_job_does_not_take_the_folder_of_another_of_its_name(cluster: Cluster) -> None:
    cluster.run(JOBS.submit(plan("sh", "-c", f"echo >>{cluster.folder}/runs")))
    late = (cluster.folder / "job").read_text()
    cluster.run(JOBS.remove("t"))
    cluster.run(JOBS.submit(replace(plan("true"), mark="def")))
    (cluster.folder / "job").write_text(late)
    cluster.run_job(12)
    assert not (cluster.folder / "runs").exists()
    assert not list(cluster.folder.rglob("claimed"))


@pytest.mark.parametrize(
    ("row", "state", "detail"),
    [
        ("12\x1ft.jlrabc\x1fPENDING\x1fPriority\x1fN/A\x1fN/A\x1f", "waiting", None),
        ("12\x1ft.jlrabc\x1fRUNNING\x1fNone\x1f5\x1f6\x1fn1", "running", None),
        ("12\x1ft.jlrabc\x1fNODE_FAIL\x1fNone\x1f5\x1f6\x1fn1", "ended", "NODE_FAIL: a node"),
        ("", "lost", "the scheduler no longer knows it"),
    ],
)
def test_slurm_tells_what_the_job_could_not_write_down(
    cluster: Cluster, row: str, state: str, detail: str | None
) -> None:
    cluster.run(JOBS.submit(plan("true")))
    cluster.queue(row)
    if not row:  # the list that it is not in may have been made before
        [job] = JOBS.read(cluster.run(JOBS.tell("t")).stdout)
        assert (job.state, job.detail) == ("unknown", "it is not listed yet")
        cluster.age("t")
    [job] = JOBS.read(cluster.run(JOBS.tell("t")).stdout)
    assert job.state == state
    assert (job.detail or "").startswith(detail or "")
    assert bool(job.detail) == bool(detail)


def test_an_end_that_slurm_told_once_is_kept(cluster: Cluster) -> None:
    cluster.run(JOBS.submit(plan("true")))
    cluster.queue("12\x1ft.jlrabc\x1fCANCELLED\x1fNone\x1f5\x1f6\x1f")
    cluster.run(JOBS.tell("t"))
    cluster.program("squeue", "exit 1")
    [job] = JOBS.read(cluster.run(JOBS.tell("t")).stdout)
    assert (job.state, job.detail) == ("ended", "CANCELLED: it was cancelled")


@pytest.mark.parametrize("accounting", ["exit 1", "echo 'CANCELLED by 0|1795390731'"])
def test_accounting_is_asked_once_who_ended_a_job(cluster: Cluster, accounting: str) -> None:
    cluster.run(JOBS.submit(plan("sh", "-c", "exit 143")))
    cluster.run_job(12)
    cluster.program("sacct", f"echo >>{cluster.folder}/asked; {accounting}")
    [job] = JOBS.read(cluster.run(JOBS.tell("t")).stdout)
    assert JOBS.read(cluster.run(JOBS.tell("t")).stdout) == [job]
    told = None if accounting == "exit 1" else "CANCELLED: it was cancelled by root"
    assert (job.exit_code, job.detail) == (143, told)
    assert (cluster.folder / "asked").read_text() == "\n"


@pytest.mark.lab
@pytest.mark.parametrize(
    ("answer", "words"),
    [
        ("echo 'slurm_load_jobs error: Socket timed out' >&2; exit 0", "Socket timed out"),
        ("exit 0", "squeue printed nothing"),
        ("exit 124", "no whole answer (status 124)"),
        ("echo 'Welcome! Maintenance on Monday.'", "Welcome!"),
        (f"printf '%s\\n' '{HEAD}'; exit 1", "no whole answer (status 1)"),
    ],
    ids=["error", "empty", "too-slow", "banner", "cut-off"],
)
def test_without_an_answer_a_job_is_unknown_and_a_stop_does_not_say_that_it_ended(
    cluster: Cluster, answer: str, words: str
) -> None:
    cluster.run(JOBS.submit(plan("true")))
    cluster.program("squeue", answer)
    cluster.program("scancel", f'echo "$1" >>{cluster.folder}/cancelled')
    cluster.program("sleep", "true")
    for _ in range(2):
        [job] = JOBS.read(cluster.run(JOBS.tell("t")).stdout)
        assert (job.state, words in (job.detail or "")) == ("unknown", True)
        late = cluster.run(JOBS.stop("t", force=False))
        assert late.returncode == 1
        assert "the scheduler does not say whether it has ended" in late.stderr
    assert (cluster.folder / "cancelled").read_text() == "12\n" * 2


def test_a_take_back_keeps_everything_while_slurm_is_silent(cluster: Cluster) -> None:
    cluster.run(JOBS.submit(plan("true")))
    cluster.program("scancel", f'echo "$1" >>{cluster.folder}/cancelled')
    cluster.program("squeue", "exit 1")
    cluster.run(JOBS.take_back(plan("true")))
    assert len(JOBS.read(cluster.run(JOBS.tell("t")).stdout)) == 1
    cluster.program("squeue", "printf 'JOBID\\n12\\n'")
    cluster.run(JOBS.take_back(plan("true")))
    assert (cluster.folder / "cancelled").read_text() == "12\n"
    assert JOBS.read(cluster.run(JOBS.tell("t")).stdout) == []


def test_nothing_stays_on_a_host_without_slurm(cluster: Cluster) -> None:
    for program in cluster.programs.iterdir():
        program.unlink()
    assert cluster.run(JOBS.submit(plan("true"))).returncode == 127
    cluster.run(JOBS.take_back(plan("true")))
    assert JOBS.read(cluster.run(JOBS.tell()).stdout) == []


def test_a_host_without_such_jobs_asks_no_scheduler(cluster: Cluster) -> None:
    cluster.program("squeue", f"touch {cluster.folder}/asked")
    assert JOBS.read(cluster.run(JOBS.tell()).stdout) == []
    assert not (cluster.folder / "asked").exists()


@pytest.mark.lab
def test_slurm_is_asked_less_and_less_while_a_job_waits(cluster: Cluster) -> None:
    """The clock is that of the script's pauses, half a second each; the job begins at 200 s.

    squeue's manual forbids loops.
    """
    cluster.run(JOBS.submit(plan("true")))
    ticks, asked = cluster.folder / "ticks", cluster.folder / "asked"
    began = cluster.folder / ".local/state/jlr/scheduled/t/began"
    ticks.touch()
    turn = f"echo >>{ticks}; [ $(wc -c <{ticks}) -lt 400 ] || : >{began}"
    cluster.program("sleep", turn)
    row = "12\x1ft.jlrabc\x1fPENDING\x1fPriority\x1fN/A\x1fN/A\x1f"
    cluster.program("squeue", f"wc -c <{ticks} >>{asked}; printf '%s\\n' '{HEAD}' '{row}'")
    assert cluster.watching(JOBS.waiting("t")).returncode == 0
    seconds = [int(line) / 2 for line in asked.read_text().split()]
    assert seconds == [2, 4, 8, 16, 32, 64, 124, 184]


@pytest.mark.parametrize("script", [JOBS.waiting("t"), JOBS.follow("t", 0, 0)])
def test_a_job_that_the_queue_has_lost_is_not_waited_for(cluster: Cluster, script: str) -> None:
    cluster.run(JOBS.submit(plan("true")))
    cluster.age("t")
    asked = cluster.folder / "asked"
    lost = f"if [ $(wc -c <{asked}) -gt 2 ]; then printf '%s\\n' '{HEAD}'; else exit 1; fi"
    cluster.program("squeue", f"echo >>{asked}; {lost}")
    cluster.program("sleep", "exec /bin/sleep 0.01")
    cluster.watching(script)
    assert asked.read_text() == "\n" * 3, "what does not answer tells nothing"
    [job] = JOBS.read(cluster.run(JOBS.tell("t")).stdout)
    assert (job.state, job.over) == ("lost", True)
