"""`jlr shell` at a terminal: size, keys and colours arrive, and the terminal comes back."""

from __future__ import annotations

import shutil
import signal
from collections.abc import Callable
from contextlib import suppress

import pytest

from tests.cli.terminal import Terminal
from tests.lab.accounts import claimed_account
from tests.lab.containers import Container, ContainerFactory
from tests.lab.laptop import Laptop
from tests.lab.programs import PATIENCE, wait_until
from tests.lab.remote_host import Keys
from tests.lab.sshd import SSHServer
from tests.long import LONG
from tests.mounts.parts import remember_session
from tests.shell.parts import running, shell


def test_size_colours_ctrl_c_and_the_exit_code_are_those_of_a_terminal(
    owner: Laptop, inside: Container
) -> None:
    with shell(owner, "-w", "/var/tmp") as terminal:
        terminal.wait_for(":/var/tmp# ")
        terminal.type("stty size; tty; printf '\\033[31m%s\\033[0m\\n' red$((1))\r")
        for shown in ("24 80\r\n", "/dev/pts/", "\x1b[31mred1"):
            terminal.wait_for(shown)
        terminal.type("until [ \"$(stty size)\" = '31 77' ]; do sleep .1; done; echo big $((1))\r")
        drag_until(terminal, "big 1")
        terminal.type("sleep 616\r")
        # Ctrl-C between bash's `fork` and the command's start would only reach bash, which waits.
        wait_until(lambda: running(inside, "sleep 616"), "the command's start")
        terminal.type("\x03")
        # A terminal drops what was typed before its Ctrl-C has arrived.
        terminal.wait_for("^C\r\n")
        terminal.type("echo interrupted $?\r")
        terminal.wait_for("interrupted 130")
        assert not terminal.echoes()
        terminal.type("exit 9\r")
        assert terminal.process.wait(PATIENCE) == 9
        assert terminal.echoes()


def drag_until(terminal: Terminal, shown: str) -> None:
    """Resize to 31 by 77; the engine's client takes no notice in its first milliseconds."""

    def dragged() -> bool:
        terminal.resize(31, 78)
        terminal.resize(31, 77)
        with suppress(AssertionError):
            terminal.wait_for(shown, seconds=1)
        return shown in terminal.screen

    wait_until(dragged, f"`{shown}`")


def test_an_unknown_terminal_type_is_no_obstacle(owner: Laptop) -> None:
    with shell(owner, "--", "sh", "-c", "echo [$TERM]", kind="xterm-kitty") as terminal:
        terminal.wait_for("[xterm-256color]")


def test_the_detach_keys_leave_alone_what_runs(owner: Laptop, inside: Container) -> None:
    with shell(owner, "--detach-keys", "ctrl-]", "--", "sleep", "613") as terminal:
        wait_until(lambda: running(inside, "sleep 613"), "the command's start")
        terminal.type("\x1d")
        terminal.process.wait(PATIENCE)
        assert terminal.echoes()
    assert running(inside, "sleep 613")


ENDS: dict[str, Callable[[Terminal, SSHServer], object]] = {
    "typed out": lambda terminal, _: terminal.type("~."),
    "terminated": lambda terminal, _: terminal.process.terminate(),
    "window closed": lambda terminal, _: terminal.process.send_signal(signal.SIGHUP),
    "connection lost": lambda _, sshd: sshd.drop_connections(),
    "killed": lambda terminal, _: terminal.process.kill(),
}


@pytest.mark.parametrize(
    ("end", "status", "told"),
    [
        ("typed out", 255, "closed the terminal"),
        ("terminated", 143, ""),
        LONG("window closed", 129, ""),
        ("connection lost", 5, "the connection broke"),
        ("killed", -9, ""),
    ],
)
def test_however_a_shell_ends_nothing_stays_behind_and_the_terminal_is_restored(
    owner: Laptop, inside: Container, sshd: SSHServer, end: str, status: int, told: str
) -> None:
    with shell(owner, *(["--no-keep"] if end == "connection lost" else [])) as terminal:
        terminal.wait_for(":/# ")
        terminal.type("sleep 611 & sleep 612\r")
        wait_until(lambda: running(inside, "sleep 612"), "the command's start")
        ENDS[end](terminal, sshd)
        assert terminal.process.wait(PATIENCE) == status
        if told:
            terminal.wait_for(told)
        assert terminal.echoes() is (end != "killed")
        wait_until(lambda: not running(inside, "sleep 61[12]"), "the end of what ran there")


@pytest.mark.parametrize("which", ["lab", LONG("--all")])
def test_disconnect_tells_what_ends_and_asks_on_a_terminal(
    owner: Laptop, inside: Container, which: str
) -> None:
    end = ("disconnect", which)
    place = f"lab/{inside.name}"
    with shell(owner) as first, shell(owner, place, "--", "sleep", "614") as second:
        first.wait_for(":/# ")
        wait_until(lambda: running(inside, "sleep 614"), "the command's start")
        asking = Terminal(end, laptop=owner)
        try:
            asking.wait_for("Disconnect from")
            for loss in ("This will be lost:", f"a shell in {place}", f"`sleep 614` in {place}"):
                assert loss in asking.screen
            asking.type("n\r")
            assert asking.process.wait(PATIENCE) == 1
        finally:
            asking.close()
        first.type("echo still $((1))\r")
        first.wait_for("still 1")
        refused = owner.jlr(*end)  # a script is not asked, and has to agree beforehand
        assert refused.status == 1, refused
        for loss in (f"`sleep 614` in {place}", f"a shell in {place}", "--yes"):
            assert loss in refused.stderr
        done = owner.jlr(*end, "--yes")
        assert (done.status, done.stdout) == (0, "disconnected from lab\n")
        assert [each.process.wait(PATIENCE) for each in (first, second)] == [5, 5]
    again = owner.jlr("shell", "--", "true")
    assert again.status == 0
    quiet = owner.jlr(*end)
    assert (quiet.status, quiet.stderr) == (0, ""), "nothing is lost"


def test_a_shell_that_was_left_is_found_again(owner: Laptop) -> None:
    with shell(owner, "--keep") as terminal:
        terminal.wait_for(":/# ")
        terminal.type("kept=4; echo is $kept\r")
        terminal.wait_for("is 4")
        terminal.process.terminate()
        assert terminal.process.wait(PATIENCE) == 143
        assert terminal.echoes()
    with shell(owner, "--keep") as terminal:
        terminal.wait_for("attached again to the shell")
        terminal.wait_for("is 4")  # as tmux shows it again
        terminal.type("exit $((kept + 5))\r")
        assert terminal.process.wait(PATIENCE) == 9
    words = ("lab", "--keep", "--name", "my.2", "--", "sh", "-c", "read x; exit $x")
    with shell(owner, *words, kind="xterm-kitty") as terminal:  # on the host itself
        terminal.wait_for("host/my+2")  # tmux's last line
        terminal.type("8\r")
        assert terminal.process.wait(PATIENCE) == 8


def test_without_a_container_it_is_the_hosts_own_login_shell(owner: Laptop) -> None:
    with shell(owner, "lab/bare") as terminal:
        terminal.wait_for("$ ")
        terminal.type("shopt login_shell; stty size; exit 4\r")
        terminal.wait_for("on\r\n")
        terminal.wait_for("24 80")
        assert terminal.process.wait(PATIENCE) == 4


@pytest.mark.parametrize("name", [LONG("bash"), "fish", "tcsh", LONG("zsh")])
def test_every_login_shell_hands_a_command_on_as_it_is(
    name: str, laptop: Laptop, sshd: SSHServer, keys: Keys
) -> None:
    program = shutil.which(name)
    if program is None:
        pytest.skip(f"`{name}` is not installed")
    words = ("-n", "two  words", 'it\'s "so"', "$(id) `id` $HOME !!", "a\\b%s*~", "one\ntwo", "é€")
    with claimed_account(program) as account:
        laptop.add_host("lab2", sshd, account, key=keys.private)
        remember_session(laptop, "bare", "none", "lab2")
        assert (
            laptop.jlr("shell", "--", "true").status == 0
        )  # later ones say nothing of a connection
        with shell(laptop, "--", "printf", "[%s]", *words, "x" * 3000) as terminal:
            terminal.result()
        shown = terminal.screen.replace("\r\n", "\n")
        assert shown == "".join(f"[{word}]" for word in (*words, "x" * 3000))


def test_a_container_that_does_not_run_is_told_before_the_terminal_is_touched(
    owner: Laptop, container: ContainerFactory
) -> None:
    stopped = container("lab/plain")
    remember_session(owner, stopped.name, "docker")
    stopped.engine.docker("kill", stopped.name)
    result = owner.jlr("shell", f"lab/{stopped.name}")
    assert result.status == 6
    assert f"the container `{stopped.name}` does not run" in result.stderr
    assert f"`jlr start lab {stopped.name}`" in result.stderr
