"""Sessions on nodes of a cluster: what their folders tell, and the way to the node."""

from __future__ import annotations

import os
import shlex
import time
from pathlib import Path

import pytest

from jlremote.place.runtimes.runtime import Container
from jlremote.place.runtimes.table import on_nodes
from tests.lab.programs import write_program
from tests.place.host.shells import through

BARE = on_nodes()["none"]
BEGUN = {"command": "jupyter lab", "mark": "abc", "id": "12\n", "began": "5 node1\n"}


class Home:
    """A home on a cluster, with programs of its own before the system's."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.state = folder / ".local/state/jlr/slurm"
        (folder / "bin").mkdir()

    def write(self, folder: str, files: dict[str, str]) -> None:
        """Write files of the session `s`."""
        (self.state / folder / "s").mkdir(parents=True, exist_ok=True)
        for name, text in files.items():
            (self.state / folder / "s" / name).write_text(text)

    def program(self, name: str, text: str) -> None:
        write_program(self.folder / "bin" / name, f"#!/bin/sh\n{text}\n")

    def read(self) -> Container | None:
        """Return the session as the runtime reads it on the login node."""
        path = f"{self.folder / 'bin'}:{os.environ['PATH']}"
        surroundings = f"export HOME={shlex.quote(str(self.folder))} PATH={shlex.quote(path)}"
        return BARE.read("s", through("sh", BARE.survey("s", ":"), before=surroundings))


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path)


def test_a_limit_is_told_by_the_laptops_clock_when_the_hosts_is_another(home: Home) -> None:
    theirs = round(time.time()) + 7200
    home.write("jobs", BEGUN | {"until": f"{theirs + 600}\n"})
    home.program("date", f"echo {theirs}")
    container = home.read()
    assert container
    assert container.until
    assert 570 <= container.until - time.time() <= 630


@pytest.mark.parametrize(
    ("job", "server", "halt"),
    [
        ({"exit": "143 9\n", "log": "JOB 12 CANCELLED AT now DUE TO TIME LIMIT"}, {}, "TIMEOUT: "),
        ({"ending": "NODE_FAIL|9"}, {}, "its job ended: NODE_FAIL: a node"),
        (
            {"ending": "FAILED|9|3:0", "began": "", "log": "hi\nno quota\n", "stderr": ""},
            {},
            "with exit code 3: it ended before its command began; its last output: no quota",
        ),
        ({"ending": "COMPLETED|9"}, {}, "Slurm says `COMPLETED`, and it left no exit code"),
        ({"exit": "0 9\n"}, {"ended": "stopped\n"}, "it was stopped with `jlr stop`"),
        ({"exit": "0 9\n"}, {"ended": "idle\n"}, "Jupyter ended after its idle time"),
        ({"exit": "0 9\n"}, {}, "Jupyter was stopped from its page"),
        ({"ending": "FAILED (x)|9"}, {}, "its job ended: Slurm says `FAILED (x)`, and it left no"),
        (
            {"exit": "3 9\n", "stderr": "no module\x1f\x1b[31m x\n"},
            {},
            "its job ended with exit code 3; its last output: no module",
        ),
    ],
)
def test_an_ended_job_tells_why(
    home: Home, job: dict[str, str], server: dict[str, str], halt: str
) -> None:
    home.write("jobs", BEGUN | job)
    home.write("servers", server)
    found = home.read()
    assert found is not None
    assert (found.running, found.waits, found.job) == (False, False, "12")
    assert halt in found.halt
    assert found.halt.isprintable()


def test_the_words_of_a_former_job_are_not_those_of_the_next(home: Home) -> None:
    home.write("servers", {"jupyter.log": "long ago\n"})
    os.utime(home.state / "servers/s/jupyter.log", (0, 0))
    home.write("jobs", BEGUN | {"exit": "3 9\n"})
    found = home.read()
    assert found is not None
    assert found.halt == "its job ended with exit code 3"


HEAD = "JOBID NAME STATE REASON START_TIME END_TIME NODELIST".replace(" ", "\x1f")


def test_an_end_that_the_job_did_not_write_down_is_asked_for_now_and_then(home: Home) -> None:
    home.write("jobs", BEGUN)
    home.write("servers", {"jupyter.log": "kernel started\n"})
    home.program("sbatch", "exit 0")
    row = "12\x1fs.jlrabc\x1f{}\x1fNone\x1f5\x1f9\x1fnode1"
    for state, running in (("RUNNING", True), ("CANCELLED", True), ("CANCELLED", False)):
        home.program("squeue", f"printf '%s\\n' '{HEAD}' '{row.format(state)}'")
        home.program("sacct", "echo 'CANCELLED by 0|9'")
        if not running:  # it was asked a moment ago
            home.write("jobs", {"looked": "0\n"})
        found = home.read()
        assert found is not None
        assert found.running is running
    assert found is not None
    assert found.halt == (
        "its job ended: CANCELLED: it was cancelled by root; its last output: kernel started"
    )
    home.program("sacct", "exit 1")
    assert home.read() == found


def test_a_job_waits_until_it_has_begun_and_another_run_of_it_is_another_start(home: Home) -> None:
    assert home.read() is None
    home.write("jobs", BEGUN | {"began": ""})
    waiting = home.read()
    assert waiting is not None
    assert (waiting.running, waiting.waits, waiting.halt) == (False, True, "")
    home.write("jobs", BEGUN)
    begun = home.read()
    home.write("jobs", BEGUN | {"began": "6 node2\n"})
    requeued = home.read()
    assert begun is not None
    assert requeued is not None
    assert begun.running
    assert begun.started_at != requeued.started_at
    home.program("sbatch", "exit 0")
    row = "12\x1fs.jlrabc\x1fPENDING\x1fBeginTime\x1f5\x1f9\x1f"
    home.program("squeue", f"printf '%s\\n' '{HEAD}' '{row}'")
    home.write("jobs", {"looked": "0\n", "probe": "what it found"})
    home.read()
    back = home.read()
    assert back is not None
    assert (back.running, back.waits) == (False, True)
    assert not (home.state / "jobs/s/probe").exists()
