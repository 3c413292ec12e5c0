"""The connection breaks in every possible way; ports stay, and requests get through."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest

from jlremote.errors import NeedsAuthentication
from jlremote.link.connection.backoff import FLAPPING_PAUSE
from tests.conftest import SSHServerFactory
from tests.lab.accounts import Account
from tests.lab.engine import Engine
from tests.lab.line import Line
from tests.lab.programs import load
from tests.lab.remote_host import Keys, running_sshd
from tests.lab.sshd import SSHServer
from tests.link.desk import Desk, logins
from tests.link.fakes import Call, FakePerson, until
from tests.link.servers import HostServers
from tests.long import LONG

QUICK = ("ServerAliveInterval 1", "ServerAliveCountMax 3")


@pytest.fixture(scope="module")
def sshd(engine: Engine, keys: Keys) -> Iterator[SSHServer]:
    """A server of these tests alone, whose logins are those of their one link."""
    with running_sshd(engine, keys) as server:
        yield server


@pytest.fixture
def up(desk: Desk, servers: HostServers, sshd: SSHServer, account: Account, keys: Keys) -> Desk:
    """A session `one` on a host whose dead connection is noticed in three seconds."""
    desk.laptop.add_host("quick", sshd, account, key=keys.private, options=QUICK)
    desk.host = "quick"
    servers.start("one")
    desk.start("one")
    return desk


def test_while_the_server_is_away_requests_wait_and_then_get_through(
    up: Desk, sshd: SSHServer
) -> None:
    forward = up.forward("one")
    pid = up.server_pid(forward)
    sshd.stop()
    until(lambda: up.state() == "reconnecting", "the loss to be noticed")
    since = up.link().status().since
    waiting = [Call(lambda: up.server_pid(forward)) for _ in range(5)]
    until(lambda: "refused" in (up.link().status().detail or ""), "a failed attempt")
    status = up.link().status()
    assert (status.state, status.since) == ("reconnecting", since)
    assert [told.state for told in status.forwards] == ["reconnecting"]
    assert all(call.running for call in waiting)
    before = sshd.log_text()
    sshd.start()
    back = time.monotonic()
    assert [call.result() for call in waiting] == [pid] * 5
    assert time.monotonic() - back < 4 * load()
    assert logins(sshd, before) == 1


def test_a_line_that_swallows_everything_is_noticed_too(
    desk: Desk, servers: HostServers, line: Line, sshd: SSHServer, account: Account, keys: Keys
) -> None:
    desk.laptop.add_host(
        "far", sshd, account, key=keys.private, port=line.port, options=(*QUICK, "ConnectTimeout 2")
    )
    desk.host = "far"
    pid = servers.start("one")
    desk.start("one")
    forward = desk.forward("one")
    line.stall()
    until(lambda: desk.state() == "reconnecting", "the loss to be noticed", timeout=12)
    waiting = Call(lambda: desk.server_pid(forward))
    line.cut()
    line.resume()
    assert waiting.result() == pid


def test_a_list_does_not_wait_for_a_host_that_says_nothing(
    desk: Desk, servers: HostServers, line: Line, sshd: SSHServer, account: Account, keys: Keys
) -> None:
    desk.laptop.add_host("far", sshd, account, key=keys.private, port=line.port, options=QUICK)
    desk.host = "far"
    servers.start("one")
    desk.start("one")
    line.stall()
    line.cut()
    until(lambda: desk.state() == "reconnecting", "the loss to be noticed")
    for words in (("list",), ("list", "one")):
        began = time.monotonic()
        told = desk.laptop.jlr(*words, "--json")
        assert time.monotonic() - began < 15 * load(), words
        assert '"state": "reconnecting"' in told.stdout, told


@pytest.mark.parametrize("seconds", [4, LONG(8)])
def test_a_proxy_before_an_unreachable_host_is_called_again_in_time(
    desk: Desk,
    servers: HostServers,
    another_sshd: SSHServerFactory,
    account: Account,
    keys: Keys,
    seconds: float,
) -> None:
    """A proxy or a NAT box takes each connection and lets it go, until the host is back."""
    server = another_sshd()
    line = Line(server.port)
    desk.laptop.add_host("far", server, account, key=keys.private, port=line.port)
    desk.host = "far"
    pid = servers.start("one")
    desk.start("one")
    forward = desk.forward("one")
    server.stop()
    waiting = Call(lambda: desk.server_pid(forward))
    time.sleep(seconds)
    server.start()
    back = time.monotonic()
    assert waiting.result() == pid
    assert time.monotonic() - back < 2 * load()
    line.close()


def test_a_host_of_another_key_is_refused_and_the_right_one_found_again(
    desk: Desk, servers: HostServers, another_sshd: SSHServerFactory, account: Account, keys: Keys
) -> None:
    """As where a name leads elsewhere while a VPN is off; nothing is offered there."""
    right, wrong = another_sshd(), another_sshd()
    line = Line(right.port)
    desk.laptop.add_host("vpn", right, account, key=keys.private, known=False, port=line.port)
    desk.laptop.known_hosts.write_text(right.known_hosts(f"[127.0.0.1]:{line.port}"))
    desk.host = "vpn"
    pid = servers.start("one")
    desk.start("one")
    forward = desk.forward("one")
    line.target = wrong.port
    line.cut()
    until(lambda: desk.state() == "needs-auth", "the refusal")
    assert "key" in (desk.link().status().detail or "")
    assert desk.laptop.jlr("url").status == 4
    assert "Accepted" not in wrong.log_text()
    line.target = right.port
    until(lambda: desk.state() == "up", "the right host", timeout=35)
    assert desk.server_pid(forward) == pid
    line.close()


def test_a_reconnect_that_needs_a_password_waits_for_a_command_that_can_ask(
    desk: Desk, servers: HostServers, another_sshd: SSHServerFactory, account: Account
) -> None:
    account.set_password("correct horse")
    server = another_sshd("PasswordAuthentication yes")
    desk.laptop.add_host("asking", server, account)
    desk.host, desk.person = "asking", FakePerson("correct horse")
    pid = servers.start("one")
    desk.start("one")
    forward = desk.forward("one")
    before = server.log_text()
    server.drop_connections()
    until(lambda: desk.state() == "needs-auth", "the state")
    with pytest.raises(NeedsAuthentication):
        Desk(desk.laptop, "asking").run("true")
    # Requests are turned away at once, and cause no attempt.
    for _ in range(3):
        with pytest.raises(Exception, match="no answer"):
            desk.server_pid(forward)
    attempts = server.log_text()[len(before) :].count("Connection from ")
    assert attempts == 2
    assert desk.forward("one").state == "needs-auth"
    assert desk.run("echo back") == "back\n"
    assert desk.server_pid(forward) == pid


def test_a_link_that_flaps_is_tried_every_five_seconds_at_most_while_a_page_waits(
    up: Desk, sshd: SSHServer
) -> None:
    """Each connection serves the page once and ends."""
    forward, away = up.forward("one"), list[float]()
    pid = up.server_pid(forward)
    for _ in range(4):
        began, before = time.monotonic(), sshd.log_text()
        sshd.drop_connections()
        assert up.server_pid(forward) == pid
        away.append(time.monotonic() - began)
        assert logins(sshd, before) == 1, away
    assert away[-1] >= FLAPPING_PAUSE, away
    assert max(away) < 3 * FLAPPING_PAUSE, away
