"""Accepted connections on their way to a far end, with a gateway that does what the test says."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator

import pytest

from jlremote.errors import ConnectionTimedOut, NeedsAuthentication
from jlremote.ssh.forward.connection_router import WaitLimits
from tests.ssh.forward.parts import HOST, PAGE, Desk, is_closed

POST = b"POST / HTTP/1.1\r\n%b\r\n" % HOST


@pytest.fixture
def desk() -> Iterator[Desk]:
    made = Desk(WaitLimits(connection=0.4, page_load=0.1))
    yield made
    made.router.close()
    for client in made.clients:
        client.close()
    made.loop.close()


def test_a_gateway_that_fails_unexpectedly_ends_one_wait_and_not_the_next(desk: Desk) -> None:
    desk.gateway.error = ZeroDivisionError("by accident")
    client = desk.connect(PAGE)
    desk.turn_until(lambda: desk.router.failure is not None)
    assert b"by accident" in client.recv(100000)
    desk.gateway.error = NeedsAuthentication("`lab` wants a password")
    second = desk.connect(POST)
    desk.turn_until(lambda: is_closed(second))
    desk.gateway.error = None
    desk.connect(b"hello")
    assert len(desk.transport.sent) == 1


def test_connections_wait_after_one_for_which_no_thread_was_left(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    desk.gateway.error = NeedsAuthentication("`lab` wants a password")

    def full(thread: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    with monkeypatch.context() as patch:
        patch.setattr(threading.Thread, "start", full)
        with pytest.raises(RuntimeError):
            desk.connect(b"hello")
    client = desk.connect(b"hello")
    desk.turn_until(lambda: is_closed(client))
    assert desk.router.failure == "`lab` wants a password"


FETCH = b"GET /api HTTP/1.1\r\nHost: localhost:8888\r\nSec-Fetch-Mode: cors\r\n\r\n"


def test_a_pages_own_request_waits_longer_than_a_programs_while_the_page_is_there(
    desk: Desk,
) -> None:
    desk.gateway.error = ConnectionTimedOut("away")
    asking, gone = desk.connect(FETCH), desk.connect(FETCH)
    gone.shutdown(socket.SHUT_WR)
    program = desk.connect(b"GET /api HTTP/1.1\r\nHost: localhost:8888\r\n\r\n")
    desk.turn_until(lambda: is_closed(program) and is_closed(gone))
    assert not is_closed(asking)
    desk.gateway.error = None
    desk.turn_until(lambda: desk.transport.sent)
    assert not is_closed(asking)


def test_of_many_requests_that_wait_lists_make_room_for_others(desk: Desk) -> None:
    """A browser sends six at once, and JupyterLab shows a dialog for the others if they fail."""
    desk.gateway.error = ConnectionTimedOut("away")
    names = (b"kernels", b"sessions", b"contents/a.ipynb", b"kernels/1a", b"terminals")
    clients = {
        name: desk.connect(FETCH.replace(b"/api", b"/one/api/%s?179" % name)) for name in names
    }
    desk.turn_until(lambda: is_closed(clients[b"terminals"]) or len(desk.router._bridges) == 3)
    for name in (b"kernels", b"sessions"):
        clients[name].setblocking(True)
        answer = clients[name].recv(1000)
        assert answer.startswith(b"HTTP/1.1 504 ")
        assert b"\r\nRetry-After: 1\r\n" in answer, "by it our pages know to ask again"
    assert not any(is_closed(clients[name]) for name in names[2:])


FOREIGN = PAGE.replace(b"localhost", b"evil.example")


def test_a_request_under_another_name_is_answered_here_and_not_passed_on(desk: Desk) -> None:
    client = desk.connect(FOREIGN)
    desk.channel()._set_remote_channel(3, 1000, 1000)
    desk.channel()._take(memoryview(b"HTTP/1.1 200 OK\r\n\r\nof the far end"))
    desk.turn()
    assert client.recv(1000).startswith(b"HTTP/1.1 421 Misdirected Request\r\n")
    assert not any(b"HTTP" in message for message in desk.transport.sent)
    assert is_closed(client)


@pytest.mark.parametrize("fault", ["away", "refused"])
def test_a_request_under_another_name_is_not_told_why_the_host_is_away(
    desk: Desk, fault: str
) -> None:
    if fault == "away":
        desk.gateway.error = ConnectionTimedOut("`lab` is away")
    client = desk.connect(FOREIGN)
    if fault == "refused":
        desk.channel().refuse("Connection refused by `lab`")
    desk.turn_until(lambda: not desk.router._bridges)
    answer = client.recv(100000)
    assert answer.startswith(b"HTTP/1.1 421 ")
    assert b"lab" not in answer


def test_a_browser_that_connects_early_is_judged_when_it_asks(desk: Desk) -> None:
    client = desk.connect()
    desk.channel()._set_remote_channel(3, 1000, 1000)
    desk.turn_until(lambda: next(iter(desk.router._bridges))._started)
    client.sendall(FOREIGN)
    desk.turn_until(lambda: not desk.router._bridges)
    assert client.recv(1000).startswith(b"HTTP/1.1 421 ")
    assert not any(b"HTTP" in message for message in desk.transport.sent)
