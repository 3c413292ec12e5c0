"""Jobs that are processes: their scripts, run by the shell of this machine."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import psutil
import pytest

from jlremote.place.host import kept_jobs
from jlremote.place.host.job import Job
from jlremote.place.host.kept_jobs import JOBS, NO_FOLDER, ProcessPlan
from jlremote.place.host.shell_text import command_line
from jlremote.remote.sending import NO_PYTHON
from tests.lab.disks import needs_root
from tests.lab.programs import lives, wait_until
from tests.place.host.shells import run_sh

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the scripts read /proc")


@pytest.fixture(autouse=True)
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder below which jobs are kept."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    return tmp_path / "jlr" / "jobs" / os.uname().nodename


def launch(*argv: str, name: str = "a-job", mark: str = "mine") -> int:
    """Launch a job and return its pid."""
    done = run_sh("sh", kept_jobs.launch(ProcessPlan(name, argv, command_line(argv), mark=mark)))
    assert done.returncode == 0, done
    return int(done.stdout.split()[0])


def job(name: str = "a-job") -> Job:
    (found,) = kept_jobs.read(run_sh("sh", JOBS.tell(name)).stdout)
    return found


def over(name: str = "a-job") -> Job:
    """Return a job once it is over."""
    wait_until(lambda: job(name).over, "its end")
    return job(name)


def printed() -> str:
    return run_sh("sh", JOBS.log("a-job", None, follow=False)).stdout


def test_only_the_user_may_look_into_the_folder_of_a_job(state: Path) -> None:
    launch("true")
    over()
    assert (state / "a-job").stat().st_mode & 0o777 == 0o700


@needs_root
def test_a_full_disk_is_named_and_hides_neither_the_end_nor_a_free_name(
    small_disk: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(small_disk))
    launch("sh", "-c", "yes 2>/dev/null; exit 3")
    ended = over()
    assert (ended.state, ended.exit_code) == ("ended", 3)
    assert "disk was full" in str(ended.detail)
    refused = run_sh("sh", kept_jobs.launch(ProcessPlan("another", ("true",), "true")))
    assert refused.returncode == NO_FOLDER
    assert "No space left on device" in refused.stderr
    assert not list(small_disk.rglob("another")), "nothing of it is left"


def test_without_python_no_job_begins(
    state: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan = ProcessPlan("a-job", ("true",), "true")
    monkeypatch.setenv("PATH", str(tmp_path))
    assert run_sh("/bin/sh", kept_jobs.launch(plan)).returncode == NO_PYTHON
    assert not state.exists()


@pytest.mark.lab
@pytest.mark.parametrize("force", [False, True])
def test_a_stop_ends_an_orphan_that_left_group_and_mark(force: bool) -> None:
    stubborn = "trap : TERM; echo $$; while :; do sleep 0.05; done"
    begins = command_line(("sh", "-c", f"env -i setsid sh -c {command_line([stubborn])} &"))
    launch("sh", "-c", f"{begins}; echo 0; sleep 100; :")
    wait_until(lambda: len(printed().split()) == 2, "the orphan")
    orphan = psutil.Process(sum(map(int, printed().split())))
    assert run_sh("sh", JOBS.stop("a-job", force=force)).returncode == 0
    assert not lives(orphan)


def test_a_job_whose_end_was_not_recorded_is_lost(state: Path) -> None:
    launch("true")
    over()
    (state / "a-job" / "exit").unlink()
    wait_until(lambda: job().over, "the keeper's end, which comes after its last word")
    lost = job()
    assert (lost.state, lost.exit_code) == ("lost", None)
    assert lost.detail is not None


@pytest.mark.lab  # it takes seconds
def test_only_a_job_with_the_right_mark_is_taken_back(state: Path) -> None:
    launch("sleep", "100", mark="mine")
    run_sh("sh", kept_jobs.take_back("a-job", "another"))
    assert job().state == "running"
    run_sh("sh", kept_jobs.take_back("a-job", "mine"))
    assert not (state / "a-job").exists()
