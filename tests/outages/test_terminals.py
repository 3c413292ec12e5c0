"""Terminals whose connection is lost: they attach again by themselves, or `~.` ends them."""

from __future__ import annotations

import re
import secrets
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest

from tests.cli.terminal import Terminal
from tests.lab.accounts import Account
from tests.lab.laptop import Laptop
from tests.lab.network import Network
from tests.lab.programs import PATIENCE, attempt, wait_until
from tests.lab.remote_host import Keys
from tests.lab.sshd import SSHServer
from tests.outages.conftest import add_far
from tests.outages.parts import link_of, within
from tests.shell.parts import LOST, shell

BACK, NOTICED = 2.0, 4.0  # the second by the settings of `far`
Fault = Callable[[Laptop, SSHServer, Network], None]
Outage = tuple[Fault, float]  # and within how many seconds it is over


@pytest.fixture(scope="module")
def owner(
    file_laptop: Laptop, network: Network, sshd: SSHServer, account: Account, keys: Keys
) -> Laptop:
    add_far(file_laptop, network, sshd, account, keys)
    return file_laptop


@pytest.fixture
def name(account: Account) -> Iterator[str]:
    """The name of a kept shell, which is gone afterwards."""
    own = secrets.token_hex(2)
    yield own
    kill(account, own)


def tmux(account: Account, *words: str) -> str:
    return attempt("runuser", "-u", account.name, "--", "tmux", "-L", "jlr", *words).stdout


def kill(account: Account, name: str) -> None:
    tmux(account, "kill-session", "-t", f"=host/{name}")


@contextmanager
def kept(owner: Laptop, name: str, *command: str) -> Iterator[Terminal]:
    with shell(owner, "far", "--keep", "--name", name, *command) as terminal:
        terminal.wait_for(f"host/{name}")
        yield terminal


@pytest.mark.parametrize("asked", [True, False])
@pytest.mark.parametrize(
    "outage",
    [
        (lambda _, sshd, __: sshd.drop_connections(), BACK),
        (lambda _, sshd, __: sshd.freeze_connections(), NOTICED + BACK),
        (lambda _, __, network: network.change_address(), NOTICED + BACK),
        (lambda owner, _, __: link_of(owner).kill(), BACK),
    ],
    ids=("dropped", "frozen", "another address", "killed link"),
)
def test_a_kept_shell_comes_back_with_its_screen(
    owner: Laptop, sshd: SSHServer, network: Network, name: str, outage: Outage, asked: bool
) -> None:
    fault, limit = outage
    with kept(owner, name) if asked else shell(owner, "far") as terminal:
        terminal.wait_for("$ ")
        terminal.type("kept=4; echo is $kept\r")
        terminal.wait_for("is 4")
        terminal.forget()
        with within(limit):
            fault(owner, sshd, network)
            terminal.wait_for(LOST)
            terminal.wait_for("is 4")  # as tmux shows it again
        terminal.resize(30, 100)
        size = "29 100" if asked else "30 100"
        terminal.type(f"until [ \"$(stty size)\" = '{size}' ]; do sleep .1; done; exit $kept\r")
        assert terminal.process.wait(PATIENCE) == 4
        assert terminal.echoes()


def test_output_that_goes_on_while_the_connection_is_cut_is_on_the_screen(
    owner: Laptop, sshd: SSHServer, name: str
) -> None:
    count = "for n in {1..1500}; do echo line $n; sleep .002; done; sleep 2; exit 8"
    with kept(owner, name, "--", "bash", "-c", count) as terminal:
        terminal.wait_for("line 20\r\n")
        sshd.drop_connections()
        terminal.wait_for("line 1500\r\n")
        assert terminal.process.wait(PATIENCE) == 8


@pytest.mark.parametrize("told", [True, False])
@pytest.mark.parametrize(
    "fault",
    [
        lambda _, sshd, __: sshd.stop(),
        lambda _, sshd, __: sshd.freeze(),
        lambda owner, _, __: link_of(owner).suspend(),
    ],
    ids=("refused", "frozen", "suspended link"),
)
def test_a_tilde_and_a_dot_end_it_while_the_connection_is_away(
    owner: Laptop, sshd: SSHServer, network: Network, name: str, fault: Fault, told: bool
) -> None:
    with kept(owner, name) as terminal:
        terminal.wait_for("$ ")
        link = link_of(owner)
        fault(owner, sshd, network)
        try:
            if told:
                terminal.wait_for(LOST)
            with within(3):
                terminal.type("lost keys\r~.")
                assert terminal.process.wait(PATIENCE) == 0
        finally:
            link.resume()
            sshd.restart()
        terminal.wait_for(f"`jlr shell far --keep --name {name}` attaches again")
        assert terminal.echoes()


def test_a_shell_that_cannot_be_ended_stays_and_the_next_one_names_it(
    owner: Laptop, sshd: SSHServer
) -> None:
    with shell(owner, "far") as terminal:
        terminal.wait_for("$ ")
        terminal.type("kept=4; echo is $kept\r")
        terminal.wait_for("is 4")
        sshd.stop()
        try:
            terminal.wait_for(LOST)
            terminal.type("~.")
            assert terminal.process.wait(PATIENCE) == 255
        finally:
            sshd.restart()
        terminal.wait_for("` attaches again")
    [again] = re.findall(r"there; `jlr (shell far --keep --name lost-\w+)`", terminal.screen)
    with shell(owner, "far") as other:
        other.wait_for(f"left by lost connections:\r\n  jlr {again}\r\n")
        other.type("exit\r")
        assert other.process.wait(PATIENCE) == 0
    with shell(owner, *again.split()[1:]) as found:
        found.wait_for("attached again to the shell that was kept")
        found.type("exit $kept\r")
        assert found.process.wait(PATIENCE) == 4


def test_without_a_tmux_that_works_there_a_shell_is_as_with_ssh(
    owner: Laptop, account: Account, sshd: SSHServer
) -> None:
    with shell(owner, "far", kind="dumb") as terminal:
        terminal.wait_for("$ ")
        terminal.type("echo $TERM; ps -o args= -p $PPID\r")
        terminal.wait_for("dumb\r\n")
        terminal.wait_for("sshd: ")
        sshd.drop_connections()
        assert terminal.process.wait(PATIENCE) == 5
        terminal.wait_for("the programs there were ended")
        assert LOST not in terminal.screen
    folder = account.home / ".local/state/jlr/shells"
    folder.rename(account.home / "aside")
    folder.touch()
    with shell(owner, "far", "--keep") as terminal:
        assert terminal.process.wait(PATIENCE) == 6
        terminal.wait_for("no tmux there keeps the shell; `sudo apt install tmux`")
    folder.unlink()


def end(account: Account, name: str) -> None:
    tmux(account, "send-keys", "-t", f"=host/{name}:", "exit 5", "Enter")
    wait_until(lambda: f"host/{name}" not in tmux(account, "list-sessions"), "its end")


def take(account: Account, name: str) -> None:
    [mark] = account.home.glob(f".local/state/jlr/shells/*/host%{name}.taken")
    mark.write_text("another\n", encoding="utf-8")


@pytest.mark.parametrize(
    ("meanwhile", "status", "said"),
    [
        (end, 5, "the shell has ended meanwhile: exit code 5"),
        (kill, 6, "the shell is gone"),
        (take, 0, "another terminal has the shell"),
    ],
)
def test_what_became_of_the_shell_while_the_network_was_down_is_told(
    owner: Laptop,
    network: Network,
    account: Account,
    name: str,
    meanwhile: Callable[[Account, str], None],
    status: int,
    said: str,
) -> None:
    with kept(owner, name) as terminal:
        terminal.wait_for("$ ")
        network.take_down()
        try:
            terminal.wait_for(LOST)
            meanwhile(account, name)
        finally:
            network.bring_up()
        with within(BACK):
            terminal.wait_for(said)
        assert terminal.process.wait(PATIENCE) == status
        assert terminal.echoes()


def test_a_connection_that_is_ended_on_purpose_is_not_waited_for(owner: Laptop, name: str) -> None:
    with kept(owner, name) as terminal:
        terminal.wait_for("$ ")
        assert owner.jlr("disconnect", "far", "--yes").status == 0
        assert terminal.process.wait(PATIENCE) == 5
        terminal.wait_for(f"`jlr shell far --keep --name {name}`")
        assert LOST not in terminal.screen


def test_a_setting_keeps_each_terminal_and_takes_none_from_another(
    owner: Laptop, account: Account
) -> None:
    owner.settle("[hosts.far]\nkeep = true\n")
    with shell(owner, "far") as first:
        assert shown(account, 1) == {"host"}
        with shell(owner, "far") as second:
            assert shown(account, 2) == {"host", "host/2"}
            second.type("\r~.")
            assert second.process.wait(PATIENCE) == 0
        assert shown(account, 1) == {"host"}
        with shell(owner, "far") as third:
            assert shown(account, 2) == {"host", "host/2"}
            for terminal in (first, third):
                terminal.type("exit 3\r")
                assert terminal.process.wait(PATIENCE) == 3
    for words in (("--no-keep",), ("--", "bash")):
        with shell(owner, "far", *words) as plain:
            plain.wait_for("$ ")
            assert tmux(account, "list-sessions") == "", "nothing is left of what was ended"


def shown(account: Account, count: int) -> set[str]:
    """Return the names of the kept shells that a terminal shows, once there are so many."""
    form = ("list-sessions", "-F", "#{?session_attached,#{session_name},}")
    wait_until(lambda: len(tmux(account, *form).split()) == count, "the shells")
    return {*tmux(account, *form).split()}
