"""`jlr run -it`: a job with a terminal, which is left and found again as `docker run`'s."""

from __future__ import annotations

import pytest

from tests.cli.terminal import Terminal
from tests.jobs.parts import SECONDS, Jobs, at_terminal
from tests.lab.containers import Container, ContainerFactory
from tests.lab.laptop import Laptop
from tests.lab.programs import wait_until
from tests.lab.sshd import SSHServer
from tests.sessions.parts import failed
from tests.shell.parts import LOST


def answers(terminal: Terminal, command: str, answer: str) -> None:
    """Type a command and wait for its output; Enter shows the prompt of a job that was left."""
    terminal.forget()
    terminal.type(f"\r{command}\r")
    terminal.wait_for(f"{answer}\r\n")


@pytest.mark.parametrize("jobs", ["image"], indirect=True)
def test_a_job_with_a_terminal_is_left_lost_and_found_again(
    jobs: Jobs, owner: Laptop, sshd: SSHServer
) -> None:
    name = jobs.name()
    run = ("run", "lab", *jobs.where, "--name", name, "-it", "--rm", "-e", "ONE=it's é")
    with at_terminal(owner, *run, "--", "sh", "-c", 'echo "[${#ONE}]"; exec sh') as terminal:
        terminal.wait_for("]\r\n")  # the first output is not lost
        assert "it's" not in terminal.screen
        answers(terminal, "until [ \"$(stty size)\" = '24 80' ]; do sleep .1; done; echo $?", "0")
        terminal.resize(30, 100)
        answers(terminal, "until [ \"$(stty size)\" = '30 100' ]; do sleep .1; done; echo $?", "0")
        # Ctrl-C kills no program that its shell has not begun yet.
        program = "sh -c 'echo begun $0 $ONE; exec sleep 600' $kept"
        answers(terminal, f"kept=4; {program}", "begun 4 it's é")
        terminal.type("\x03")
        terminal.type("\x10\x11")
        assert terminal.process.wait(SECONDS) == 0
        terminal.wait_for(f"`lab/{name}` keeps running; `jlr job attach lab/{name}`")
        assert terminal.echoes()
    job = jobs.state(name)
    assert (job["state"], job["terminal"]) == ("running", True)
    with at_terminal(owner, "job", "attach", name, "--detach-keys", "ctrl-]") as terminal:
        answers(terminal, "echo is $kept", "is 4")
        sshd.drop_connections()
        terminal.wait_for(LOST)
        terminal.wait_for("connected again")
        answers(terminal, "echo back $kept", "back 4")
        terminal.type("\x1d")
        assert terminal.process.wait(SECONDS) == 0
    with at_terminal(owner, "job", "attach", name) as terminal:
        answers(terminal, "echo last $kept", "last 4")
        terminal.type("exit $((kept + 5))\r")
        assert terminal.process.wait(SECONDS) == 9
    assert owner.jlr("job", "attach", f"lab/{name}").status == 6, "`--rm` was asked for"


@pytest.mark.parametrize("goes_on", [True, False])
def test_what_a_job_printed_while_the_connection_was_away_is_shown_once(
    owner: Laptop, sshd: SSHServer, containers: ContainerFactory, goes_on: bool
) -> None:
    name = containers.name()
    script = "echo one; until [ -e /go ]; do sleep .1; done; seq 2 200; " + "read x; " * goes_on
    run = ("run", "lab", "--image", "lab/plain", "--name", name, "-it", "--rm")
    with at_terminal(owner, *run, "--", "sh", "-c", f"{script} exit 5") as terminal:
        terminal.wait_for("one\r\n")
        sshd.stop()
        try:
            terminal.wait_for(LOST)
            containers.engine.docker("exec", name, "touch", "/go")
            wait_until(lambda: "200" in containers.engine.docker("logs", name), "its output")
        finally:
            sshd.start()
        terminal.wait_for("\r\n200\r\n")
        shown = terminal.screen.splitlines()
        assert [shown.count(line) for line in ("one", *map(str, range(2, 201)))] == [1] * 200
        if goes_on:
            terminal.type("\r")
        assert terminal.process.wait(SECONDS) == 5


def test_a_terminal_that_cannot_be_given_is_refused(
    owner: Laptop, inside: Container, containers: ContainerFactory
) -> None:
    name = containers.name()
    run = ("run", "lab", "--name", name)
    refused = owner.jlr(*run, "--image", "lab/plain", "-it", "--", "true")
    failed(refused, 2, "needs a terminal here")
    image = ("--image", "lab/plain", "--no-init")
    with at_terminal(owner, *run, *image, "-it", "--", "/no/such/program") as terminal:
        assert terminal.process.wait(SECONDS) == 1
        terminal.wait_for(f"`lab/{name}` did not start")
    assert owner.jlr("job", "attach", f"lab/{name}").status == 6
    for where, place in ((("--runtime", "none"), "lab"), (("--in", inside.name), inside.name)):
        for option, keep in (("-t", " --keep"), ("-i", "")):
            elsewhere = owner.jlr(*run, *where, f"{option}d", "--", "echo", "it's")
            told = f"`{option}` is for a job in a new container"
            failed(elsewhere, 2, told, f"{place}{keep} -- echo 'it'\"'\"'s'`")
    begun = owner.jlr(*run, "--image", "lab/plain", "-itd", "--", "sh")
    assert begun.status == 0, begun
    with at_terminal(owner, "job", "attach", name) as terminal:
        answers(terminal, "echo $((40 + 2))", "42")
        terminal.type("~.")
        assert terminal.process.wait(SECONDS) == 0
        terminal.wait_for(f"`jlr job attach lab/{name}` attaches again")
        assert terminal.echoes()
    assert owner.jlr("rm", name, "--force", "--yes").status == 0
