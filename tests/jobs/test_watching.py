"""Whatever happens to who watches, the job goes on; and each byte of its output comes once."""

from __future__ import annotations

import signal
from contextlib import suppress

import psutil

from tests.jobs.conftest import one_place
from tests.jobs.parts import SECONDS, Jobs, at_terminal
from tests.lab.engine import Engine
from tests.lab.programs import wait_until
from tests.lab.sshd import SSHServer
from tests.link.desk import is_link
from tests.outages.parts import within

LINES = 400
COUNT = f"""\
i=0; while [ $i -lt {LINES} ]; do i=$((i + 1))
echo out $i; echo err $i >&2; sleep 0.005; done; printf end; exit 9"""
LASTING = "echo begun; sleep 600; echo not this"
STUBBORN = 'trap "echo asked" INT; echo begun; while :; do sleep 0.1; done'


def test_after_losses_nothing_is_missing_and_nothing_comes_twice(
    jobs: Jobs, sshd: SSHServer
) -> None:
    with jobs.watched(jobs.name(), COUNT) as watching:
        seen = [watching.line() for _ in range(20)]
        with within(60):
            sshd.drop_connections()
            seen += [watching.line() for _ in range(100)]
            for process in filter(is_link, jobs.laptop.processes()):
                process.kill()
            status, rest, told = watching.end()
    assert status == 9
    assert "".join(seen) + rest == "".join(f"out {n}\n" for n in range(1, LINES + 1)) + "end"
    errors = [line for line in told.splitlines() if line.startswith("err ")]
    assert errors == [f"err {number}" for number in range(1, LINES + 1)]
    assert "keeps running; trying again" in told


def test_a_job_goes_on_however_its_watcher_ends(jobs: Jobs, engine: Engine) -> None:
    name = jobs.name()
    with jobs.watched(name, LASTING) as watching:
        assert watching.line() == "begun\n"
        in_image = "--image" in jobs.where
        job = engine.docker("inspect", "--format", "{{.Id}}", name).strip() if in_image else name
        count = 1 if in_image else 2  # the engine's client, or a `tail` of each stream
        wait_until(lambda: watchers(job) == count, "both streams' being shown")
        for number in (signal.SIGHUP, signal.SIGTERM, signal.SIGKILL):
            another = jobs.laptop.spawn("job", "attach", name)
            assert another.stdout is not None
            assert another.stdout.readline() == "begun\n"
            another.send_signal(number)
            another.communicate(timeout=SECONDS)
        assert jobs.state(name)["state"] == "running"
        wait_until(lambda: watchers(job) == count, "the end of what showed it on the host")


def watchers(job: str) -> int:
    """Return how many processes of the host show a job's output."""
    found = 0
    for process in psutil.process_iter():
        with suppress(psutil.Error):
            words = process.cmdline()
            found += bool({"tail", "logs"} & set(words)) and any(job in word for word in words)
    return found


def test_ctrl_c_asks_the_job_and_all_that_it_began(jobs: Jobs) -> None:
    with jobs.watched(jobs.name(), LASTING) as watching:
        assert watching.line() == "begun\n"
        watching.process.send_signal(signal.SIGINT)
        status, rest, told = watching.end()
    assert (status, rest) == (130, "")
    assert "to stop (SIGINT); Ctrl-C again kills it" in told


@one_place
def test_ctrl_c_on_a_terminal_ends_no_work_unasked(jobs: Jobs) -> None:
    name = jobs.name()
    run = ("run", "lab", *jobs.where, "--name", name, "--", "sh", "-c", STUBBORN)
    with at_terminal(jobs.laptop, *run) as terminal:
        terminal.wait_for("begun", seconds=SECONDS)
        terminal.type("\x03")
        terminal.wait_for(f"Interrupt `lab/{name}`?")
        terminal.type("\r")  # which is no yes
        assert terminal.process.wait(SECONDS) == 130
        terminal.wait_for(f"`lab/{name}` keeps running; `jlr job attach lab/{name}` shows it")
    for keys in ("\x03", "x\x10\x11"):
        with at_terminal(jobs.laptop, "job", "attach", name) as terminal:
            terminal.wait_for(f"Ctrl-C or ctrl-p,ctrl-q leaves `lab/{name}` running")
            terminal.wait_for("begun", seconds=SECONDS)
            terminal.type(keys)
            assert terminal.process.wait(SECONDS) == 130
    with at_terminal(jobs.laptop, "logs", name, "--follow") as terminal:
        terminal.wait_for("begun", seconds=SECONDS)
        terminal.type("\x03")
        assert terminal.process.wait(SECONDS) == 130
    assert jobs.state(name)["state"] == "running"
    assert "asked" not in jobs.laptop.jlr("logs", name).stdout, "SIGINT came"
    assert jobs.laptop.jlr("job", "rm", f"lab/{name}", "--force", "--yes").status == 0


@one_place
def test_two_ctrl_c_on_a_terminal_interrupt_the_job_and_a_third_kills_it(jobs: Jobs) -> None:
    name = jobs.name()
    run = ("run", "lab", *jobs.where, "--name", name, "--rm", "--", "sh", "-c", STUBBORN)
    with at_terminal(jobs.laptop, *run) as terminal:
        terminal.wait_for("begun", seconds=SECONDS)
        terminal.type("\x03")
        terminal.wait_for(f"Interrupt `lab/{name}`?")
        terminal.type("\x03")
        terminal.wait_for("asked", seconds=SECONDS)
        terminal.type("\x03")
        assert terminal.process.wait(SECONDS) == 137
