"""`--notify`: the person is told of a job's end, on the desktop or by the terminal."""

from __future__ import annotations

from tests.jobs.conftest import one_place
from tests.jobs.parts import Jobs, at_terminal
from tests.lab.desktop import desktop


@one_place
def test_a_jobs_end_is_told_once_on_the_desktop_though_nothing_watches_it(jobs: Jobs) -> None:
    """The link tells of a job that was left alone; of a watched one its command does, at once."""
    laptop, where = jobs.laptop, jobs.where
    with desktop("body-markup") as shown:
        laptop.shut_down()  # its link has no desktop
        laptop.environment["DBUS_SESSION_BUS_ADDRESS"] = shown.address
        alone, watched = jobs.name(), jobs.name()
        argv = ("run", "lab", *where, "--notify", "--rm", "--name")
        script = "sleep 1; exit 3 # <b>\x1b[31m"
        begun = laptop.jlr(*argv, alone, "-d", "--", "sh", "-c", script)
        assert (begun.status, begun.stderr.count("notices")) == (0, 0), begun
        assert laptop.jlr(*argv, watched, "--", "sh", "-c", "exit 4").status == 4
        told = dict(shown.wait(2))
        assert told[f"lab/{watched}"].startswith("the job has ended with exit code 4")
        text = told[f"lab/{alone}"]
        assert text.startswith("the job has ended with exit code 3 after ")
        assert "&lt;b&gt;" in text
        assert "\x1b" not in text
        assert laptop.jlr("config", "notify").stdout == "a notice is on the desktop\n"
        assert shown.wait(3)[2][0] == "jlr"
    del laptop.environment["DBUS_SESSION_BUS_ADDRESS"]
    laptop.jlr("rm", f"lab/{alone}", "--yes")


@one_place
def test_without_a_desktop_the_terminal_tells(jobs: Jobs) -> None:
    laptop = jobs.laptop
    argv = ("run", "lab", *jobs.where, "--notify", "--rm", "--name", name := jobs.name())
    with at_terminal(laptop, *argv, "--", "true") as terminal:
        terminal.wait_for("no desktop session")
        terminal.wait_for(f"\x1b]2;lab/{name}: the job has ended with exit code 0")
        terminal.wait_for("\x07\x07")
    with at_terminal(laptop, "config", "notify") as terminal:
        terminal.wait_for("\x1b]2;jlr: this is a test of notices\x07\x07")
        terminal.wait_for("bell and title")
    neither = laptop.jlr("config", "notify")
    assert neither.status == 1
    assert "neither a desktop nor a terminal" in neither.stderr
