"""What keeps a job on its host: which process it is, and which way a signal takes."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from jlremote.remote.job_keeper import BegunJob
from jlremote.remote.orphans import facts
from tests.lab.programs import PATIENCE

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="it reads /proc")

Running = subprocess.Popen[bytes]
NOTE = ["sh", "-c", 'echo "$0 $1" >>told']


@pytest.fixture
def running(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Running]:
    """The process of a job, whose folder is the present one; its keeper has ended."""
    monkeypatch.chdir(tmp_path)
    with subprocess.Popen(["sleep", "600"], start_new_session=True) as process:
        start, boot = facts(process.pid)[19], Path("/proc/sys/kernel/random/boot_id").read_text()
        Path("process").write_text(f"{process.pid} {start} {boot.strip()} {process.pid} 1\n")
        yield process
        process.kill()


def begun(*, signal_argv: tuple[str, ...] = (), sweep: tuple[str, ...] = ()) -> BegunJob:
    ways = {"signal": signal_argv, "sweep": sweep, "in_container": bool(sweep)}
    Path("ways").write_text(json.dumps(ways))
    return BegunJob()


@pytest.mark.parametrize(
    "change",
    [
        lambda words: [words[0], "1", *words[2:]],  # another process has its number
        lambda words: [*words[:2], "another-boot", *words[3:]],
    ],
)
def test_a_process_of_the_same_number_is_not_the_job(
    running: Running, change: Callable[[list[str]], list[str]]
) -> None:
    assert begun().is_alive()
    file = Path("process")
    file.write_text(" ".join(change(file.read_text().split())))
    another = begun()
    assert not another.is_alive()
    another.signal("KILL")
    assert running.poll() is None


def test_a_job_lives_until_its_process_ends_or_its_end_is_recorded(running: Running) -> None:
    job = begun()
    Path("exit").touch()
    assert not job.is_alive()
    Path("exit").unlink()
    job.signal("TERM")
    assert job.ended(10)
    assert running.wait(PATIENCE) == -signal.SIGTERM


def test_a_signal_goes_into_the_container_once_something_runs_there(running: Running) -> None:
    job = begun(signal_argv=(*NOTE, "signal"), sweep=(*NOTE, "sweep"))
    job.signal("INT")
    assert Path("told").read_text() == "signal INT\n"
    assert running.poll() is None
    Path("waiting").touch()  # the command has not begun
    job.signal("INT")
    assert running.wait(PATIENCE) == -signal.SIGINT


def test_a_client_that_would_say_nothing_is_killed_after_its_command(running: Running) -> None:
    begun(sweep=(*NOTE, "sweep")).signal("KILL")
    assert Path("told").read_text() == "sweep KILL \n"
    assert running.wait(PATIENCE) == -signal.SIGKILL
