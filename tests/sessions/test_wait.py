"""`jlr wait` on real parts: the watch on the host is held open, and outlasts a cut connection."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager

import psutil
import pytest

from tests.lab.accounts import Account
from tests.lab.containers import Container, ContainerFactory
from tests.lab.laptop import Laptop
from tests.lab.line import Line
from tests.lab.programs import wait_until
from tests.lab.remote_host import Keys
from tests.lab.sshd import SSHServer
from tests.sessions.parts import Session, failed, started

# Code of a cell that works until a file is there, and then does something.
UNTIL = "import os, time\nwhile not os.path.exists('/tmp/{}'): time.sleep(0.1)\n{}"
JOB = ("run", "far", "--runtime", "none", "--detach", "--name")

# What is in the scripts that last.
SESSIONS, RUNS, JOBS = "while same", "before=$now", "tail -c +"


@pytest.fixture(scope="module")
def here(containers: ContainerFactory) -> Container:
    return containers()


@pytest.fixture
def far(
    laptop: Laptop, here: Container, line: Line, sshd: SSHServer, account: Account, keys: Keys
) -> Session:
    """A session of a host behind a line that can be cut."""
    laptop.add_host("far", sshd, account, key=keys.private, port=line.port)
    return started(laptop, here, host="far")


@contextmanager
def waiting(
    session: Session, watch: str, *words: str, name: str = ""
) -> Iterator[subprocess.Popen[str]]:
    """Yield a `jlr wait` once its script lasts on the host, which is this machine."""
    known = {process.pid for process in psutil.process_iter()}

    def lasts() -> bool:
        found = psutil.process_iter(["cmdline"])
        lines = (" ".join(one.info["cmdline"] or ()) for one in found if one.pid not in known)
        return any(watch in line and (name or session.name) in line for line in lines)

    with session.laptop.spawn("wait", *words) as command:
        try:
            wait_until(lasts, f"the watch of {words}", timeout=60)
            yield command
        finally:
            command.kill()


def over(command: subprocess.Popen[str]) -> tuple[int, str]:
    told = command.communicate(timeout=60)[0]
    return command.returncode, told


def left(session: Session, code: str) -> str:
    """Begin code in the session's kernel, leave it, and return the id of its run."""
    assert session.laptop.jlr("exec", f"far/{session.name}", "-c", "1").status == 0
    late = session.laptop.jlr("exec", f"far/{session.name}", "-c", code, "--timeout", "3s")
    assert late.status == 7, late
    return str(re.findall("run-[0-9a-f]{12}", late.stderr)[0])


def test_a_run_and_an_idle_session_are_waited_for_across_a_cut_connection(
    far: Session, line: Line
) -> None:
    jlr = far.laptop.jlr
    run = left(far, UNTIL.format("go", "1 / 0"))
    late = jlr("wait", far.name, run, "--timeout", "1s")
    failed(late, 124, f"not done after 1s: far/{far.name} far/{far.name}/{run}", "--timeout 1s`")
    failed(jlr("wait", run, "--for", "idle"), 2, "`--for idle` is not for")
    failed(jlr("wait", "--for", "idle", "--timeout", "5s"), 124, f"`jlr wait far/{far.name} --for")
    with (
        waiting(far, RUNS, run) as of_run,
        waiting(far, SESSIONS, far.name, "--for", "idle") as idle,
    ):
        before = line.connections
        line.cut()
        line.cut()
        far.ask("api/status")
        assert line.connections > before
        assert (of_run.poll(), idle.poll()) == (None, None)
        far.run_in_terminal("touch /tmp/go")
        assert over(of_run)[0] == 1
        code, told = over(idle)
        assert (code, "no kernel of it is busy" in told) == (0, True), told
    again = jlr("wait", f"far/{far.name}/{run}", "--json")
    assert again.status == 1, again
    assert json.loads(again.stdout)["happened"] == "end"
    assert "error after" in json.loads(again.stdout)["detail"]


def test_the_end_of_a_session_or_kernel_ends_what_waits_for_more(far: Session) -> None:
    run = left(far, UNTIL.format("die", "os.kill(os.getpid(), 9)"))
    failed(far.laptop.jlr("wait", far.name, "run-000000000000", "--timeout", "1s"), 124, "run-0")
    with waiting(far, RUNS, run) as of_run, waiting(far, SESSIONS, far.name) as end:
        far.run_in_terminal("touch /tmp/die")
        code, told = over(of_run)
        assert (code, "its kernel died" in told) == (1, True), told
        assert end.poll() is None
        assert far.laptop.jlr("stop", far.name, "--container", "--force", "--yes").status == 0
        assert over(end)[0] == 0
    again = far.laptop.jlr("wait", far.name, "--json")
    assert (again.status, json.loads(again.stdout)["happened"]) == (0, "end")
    idle_no_more = far.laptop.jlr("wait", far.name, "--for", "idle")
    assert (idle_no_more.status, "stopped" in idle_no_more.stderr) == (1, True)


def test_a_session_that_is_stopped_was_not_idle_and_its_run_failed(far: Session) -> None:
    run = left(far, UNTIL.format("never", ""))
    with (
        waiting(far, RUNS, f"{far.name}/{run}") as of_run,
        waiting(far, SESSIONS, far.name, "--for", "idle") as idle,
    ):
        assert far.laptop.jlr("stop", far.name, "--force", "--yes").status == 0
        code, told = over(idle)
        assert (code, f"`far/{far.name}`: it is stopped" in told) == (1, True), told
        assert over(of_run)[0] == 1


def test_jobs_are_told_as_each_ends_and_their_codes_outlast_a_cut(
    far: Session, line: Line, containers: ContainerFactory
) -> None:
    laptop, names = far.laptop, [containers.name(), containers.name()]
    for name, code in zip(names, (4, 0), strict=True):
        script = f"while [ ! -e /tmp/{name} ]; do sleep 0.1; done; exit {code}"
        assert laptop.jlr(*JOB, name, "--", "sh", "-c", script).status == 0
    failed(laptop.jlr("wait", *names, "far/none-such"), 6, "none-such")
    failed(laptop.jlr("wait", names[0], "--for", "time-left=5m"), 2, "has no time limit")
    failed(laptop.jlr("wait", names[0], "--for", "idle"), 2, "is not for")
    failed(laptop.jlr("wait", "--for", "sleep"), 2, "no `--for sleep`")
    with waiting(far, JOBS, *names, "--json", name=names[0]) as both:
        line.cut()
        assert laptop.jlr("shell", "far", "touch", f"/tmp/{names[1]}").status == 0
        assert both.stdout is not None
        while not (told := both.stdout.readline()).startswith("{"):
            assert told, "it has ended"
        assert json.loads(told)["name"] == f"far/{names[1]}"
        assert laptop.jlr("shell", "far", "touch", f"/tmp/{names[0]}").status == 0
        code, rest = over(both)
    last = json.loads(rest.splitlines()[-1])
    assert (code, last["name"], last["exit_code"]) == (4, f"far/{names[0]}", 4)
    assert laptop.jlr("wait").status == 0, "the latest job"
    assert laptop.jlr("job", "rm", *names, "--yes").status == 0
