"""Terminals whose connection is lost: they attach again by themselves, or `~.` ends them."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest

from tests.cli.terminal import Terminal
from tests.lab.accounts import Account
from tests.lab.laptop import Laptop
from tests.lab.programs import PATIENCE, attempt, wait_until
from tests.lab.remote_host import Keys
from tests.lab.sshd import SSHServer
from tests.outages.parts import link_of, within
from tests.shell.parts import LOST, shell

BACK = 2.0
NOTICED = 4.0  # by the settings of `quick`


@pytest.fixture(scope="module")
def owner(file_laptop: Laptop, sshd: SSHServer, account: Account, keys: Keys) -> Laptop:
    """A laptop with the host `quick`, whose silence is soon noticed."""
    settings = ("ServerAliveInterval 1", "ServerAliveCountMax 3")
    file_laptop.add_host("quick", sshd, account, key=keys.private, options=settings)
    return file_laptop


@pytest.fixture
def name(account: Account) -> Iterator[str]:
    """The name of a kept shell, which is gone afterwards."""
    own = secrets.token_hex(2)
    yield own
    tmux(account, "kill-session", "-t", f"=host/{own}")


def tmux(account: Account, *words: str) -> str:
    return attempt("runuser", "-u", account.name, "--", "tmux", "-L", "jlr", *words).stdout


@contextmanager
def kept(owner: Laptop, name: str, *command: str) -> Iterator[Terminal]:
    with shell(owner, "quick", "--keep", "--name", name, *command) as terminal:
        terminal.wait_for(f"host/{name}")
        yield terminal


def dropped(owner: Laptop, sshd: SSHServer) -> float:
    sshd.drop_connections()
    return BACK


def frozen(owner: Laptop, sshd: SSHServer) -> float:
    sshd.freeze_connections()
    return BACK + NOTICED


def killed(owner: Laptop, sshd: SSHServer) -> float:
    link_of(owner).kill()
    return BACK


@pytest.mark.parametrize("cut", [dropped, frozen, killed])
def test_a_kept_shell_comes_back_with_its_screen(
    owner: Laptop,
    sshd: SSHServer,
    name: str,
    cut: Callable[[Laptop, SSHServer], float],
) -> None:
    with kept(owner, name) as terminal:
        terminal.type("kept=4; echo is $kept\r")
        terminal.wait_for("is 4")
        terminal.forget()
        limit = cut(owner, sshd)
        with within(limit):
            terminal.wait_for(LOST)
            terminal.wait_for("is 4")  # as tmux shows it again
        terminal.resize(30, 100)
        terminal.type("until [ \"$(stty size)\" = '29 100' ]; do sleep .1; done; exit $kept\r")
        assert terminal.process.wait(PATIENCE) == 4, terminal.result()
        assert terminal.echoes()


def test_output_that_goes_on_while_the_connection_is_cut_is_on_the_screen(
    owner: Laptop, sshd: SSHServer, name: str
) -> None:
    count = "n=0; while [ $n -lt 1500 ]; do n=$((n+1)); echo line $n; sleep .002; done; read x"
    with kept(owner, name, "--", "sh", "-c", count) as terminal:
        terminal.wait_for("line 20\r\n")
        sshd.drop_connections()
        terminal.wait_for(LOST)
        terminal.wait_for("line 1500\r\n")
        terminal.type("\r")
        assert terminal.process.wait(PATIENCE) == 0


def refused(owner: Laptop, sshd: SSHServer, account: Account) -> None:
    sshd.stop()


def stuck(owner: Laptop, sshd: SSHServer, account: Account) -> None:
    sshd.freeze()


def suspended(owner: Laptop, sshd: SSHServer, account: Account) -> None:
    link_of(owner).suspend()


@pytest.mark.parametrize(
    ("away", "told"), [(refused, True), (stuck, True), (stuck, False), (suspended, False)]
)
def test_a_tilde_and_a_dot_end_it_while_the_connection_is_away(
    owner: Laptop,
    sshd: SSHServer,
    account: Account,
    name: str,
    away: Callable[[Laptop, SSHServer, Account], None],
    told: bool,
) -> None:
    with kept(owner, name) as terminal:
        terminal.wait_for("$ ")
        link = link_of(owner)
        away(owner, sshd, account)
        try:
            if told:
                terminal.wait_for(LOST)
            with within(3):
                terminal.type("lost keys\r~.")
                assert terminal.process.wait(PATIENCE) == 0
        finally:
            link.resume()
            sshd.restart()
        terminal.wait_for(f"`jlr shell quick --keep --name {name}` attaches again")
        assert terminal.echoes()


def ended(account: Account, name: str) -> None:
    tmux(account, "send-keys", "-t", f"=host/{name}:", "exit 5", "Enter")


def gone(account: Account, name: str) -> None:
    tmux(account, "kill-session", "-t", f"=host/{name}")


def taken(account: Account, name: str) -> None:
    [mark] = account.home.glob(f".local/state/jlr/shells/*/host%{name}.taken")
    mark.write_text("another\n", encoding="utf-8")


@pytest.mark.parametrize(
    ("meanwhile", "status", "said"),
    [
        (ended, 5, "the shell has ended meanwhile: exit code 5"),
        (gone, 6, "the shell is gone"),
        (taken, 0, "another terminal has the shell"),
    ],
)
def test_what_became_of_the_shell_meanwhile_is_told(
    owner: Laptop,
    sshd: SSHServer,
    account: Account,
    name: str,
    meanwhile: Callable[[Account, str], None],
    status: int,
    said: str,
) -> None:
    with kept(owner, name) as terminal:
        terminal.wait_for("$ ")
        sshd.stop()
        try:
            terminal.wait_for(LOST)
            meanwhile(account, name)
            if meanwhile is not taken:
                there = f"host/{name}"
                wait_until(lambda: there not in tmux(account, "list-sessions"), "its end")
        finally:
            sshd.start()
        assert terminal.process.wait(PATIENCE) == status
        terminal.wait_for(said)
        assert terminal.echoes()


def test_a_connection_that_is_ended_on_purpose_is_not_waited_for(owner: Laptop, name: str) -> None:
    with kept(owner, name) as terminal:
        terminal.wait_for("$ ")
        assert owner.jlr("disconnect", "quick", "--yes").status == 0
        assert terminal.process.wait(PATIENCE) == 5
        terminal.wait_for(f"`jlr shell quick --keep --name {name}`")
        assert LOST not in terminal.screen


def test_a_setting_keeps_each_terminal_and_takes_none_from_another(
    owner: Laptop, account: Account
) -> None:
    owner.settle("[hosts.quick]\nkeep = true\n")
    try:
        with shell(owner, "quick") as first:
            assert wait_shown(account, 1) == ["host"]
            second = Terminal(("shell", "quick"), laptop=owner)
            assert sorted(wait_shown(account, 2)) == ["host", "host/2"]
            second.type("\r~.")
            assert second.process.wait(PATIENCE) == 0
            second.close()
            with shell(owner, "quick") as third:
                third.wait_for("attached again to the shell")
                assert sorted(wait_shown(account, 2)) == ["host", "host/2"]
                for terminal in (first, third):
                    terminal.type("exit 3\r")
                    assert terminal.process.wait(PATIENCE) == 3
        assert tmux(account, "list-sessions") == "", "nothing is left of what was ended"
        for words in (("quick", "--no-keep"), ("quick", "--", "bash")):
            with shell(owner, *words) as plain:
                plain.wait_for("$ ")
                assert tmux(account, "list-sessions") == ""
    finally:
        owner.settings.unlink()


def wait_shown(account: Account, count: int) -> list[str]:
    """Return the names of the kept shells that a terminal shows, once there are so many."""
    form = ("list-sessions", "-F", "#{?session_attached,#{session_name},}")
    wait_until(lambda: len(tmux(account, *form).split()) == count, "the shells")
    return tmux(account, *form).split()
