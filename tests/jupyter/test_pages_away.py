"""Which pages of a kernel that are away are waited for, and how much of what comes is kept."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from jlremote.jupyter.in_server import resumption
from jlremote.jupyter.in_server.resumption import PageQueue, Pages, Socket


class Stream:
    """A channel of a page."""

    channel = "iopub"

    def __init__(self) -> None:
        self.receive: Any = None
        self.ended = False

    def on_recv_stream(self, receive: Any) -> None:
        self.receive = receive

    def on_recv(self, _: None) -> None:
        self.receive = None

    def closed(self) -> bool:
        return self.ended

    def close(self) -> None:
        self.ended = True

    def says(self, message: bytes) -> None:
        self.receive(self, [message])


class Handler:
    """A WebSocket's handler, whose page answers pings when it is told to."""

    def __init__(self, received: str = "") -> None:
        self.received = received
        self.written: list[bytes] = []
        self.pings: list[bytes] = []
        stream = SimpleNamespace(closed=lambda: False)
        self.ws_connection = SimpleNamespace(
            client_terminated=False, server_terminated=False, stream=stream
        )

    def get_argument(self, _: str, default: str) -> str:
        return self.received or default

    def write_message(self, message: bytes) -> None:
        self.written.append(message)

    def ping(self, data: bytes) -> None:
        self.pings.append(data)

    def on_pong(self, _: bytes) -> None:
        pass


class Manager:
    """A manager with one kernel, `k`."""

    buffer_offline_messages = True

    def __init__(self) -> None:
        self.kernel = SimpleNamespace(ports=[1, 2])
        self.pages = Pages(type(self))

    def start_buffering(self, *_: Any) -> None:
        raise AssertionError

    def stop_buffering(self, _: str) -> None:
        pass

    def get_kernel(self, _: str) -> Any:
        return self.kernel

    def goes(self, page: str, *, lost: bool = True) -> Stream:
        """Let a page go, and return its channel."""
        stream = Stream()
        made = PageQueue({"iopub": stream}, self.kernel.ports)
        made.lost = lost
        self.pages.keep(self, "k", page, made.channels)
        return stream

    def comes(self, page: str, received: str = "") -> list[bytes] | None:
        """Return what a page is sent when it comes again."""
        told = self.pages.take_up(self, "k", page)
        return None if told is None else begun(told["channels"], Handler(received)).written


def begun(channels: Any, handler: Handler) -> Handler:
    """Let a page go on with a connection of that handler."""
    send = lambda to, _, parts: to.write_message(parts[0])  # noqa: E731
    channels["iopub"].page.begin(Socket(handler, handler, send))
    return handler


@pytest.fixture
def manager(monkeypatch: pytest.MonkeyPatch) -> Manager:
    loop = SimpleNamespace(call_later=lambda *_: None)
    monkeypatch.setattr(resumption, "IOLoop", SimpleNamespace(current=lambda: loop))
    return Manager()


def test_of_a_page_that_was_closed_nothing_is_kept_once_another_comes(manager: Manager) -> None:
    left, lost = manager.goes("left", lost=False), manager.goes("lost")
    assert left.ended
    lost.says(b"x")
    assert manager.comes("new") is None
    assert manager.comes("lost") == [b"x"]
    closed = manager.goes("closed", lost=False)
    assert manager.comes("new") is None
    assert closed.ended


def test_the_oldest_goes_where_too_much_is_kept(
    manager: Manager, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(resumption, "MOST_BYTES", 5)
    monkeypatch.setattr(resumption, "MOST_PAGES", 2)
    streams = [manager.goes(page) for page in "abc"]
    assert [stream.ended for stream in streams] == [True, False, False]
    for number in range(11):
        streams[2].says(b"%x" % number)
    assert manager.comes("c") == [b"6", b"7", b"8", b"9", b"a"]
    streams[1].says(b"more than all")
    assert manager.comes("b") == [b"more than all"]


def test_nothing_is_kept_of_a_kernel_that_has_ended_or_has_other_ports(manager: Manager) -> None:
    away, last = manager.goes("away"), manager.goes("last")
    manager.kernel.ports = [3, 4]
    assert manager.comes("away") is None
    assert away.ended
    manager.pages.end(manager, "k")
    assert last.ended


@pytest.mark.parametrize(("received", "again"), [("", [b"2", b"3"]), ("1", [b"1", b"2", b"3"])])
def test_what_a_browser_has_is_sent_again_to_a_page_that_has_it_not(
    manager: Manager, received: str, again: list[bytes]
) -> None:
    """The browser has confirmed `0` and `1`; a page that counts may have got no more than one."""
    stream = Stream()
    page = PageQueue({"iopub": stream}, [1, 2])
    handler = begun(page.channels, Handler("0" if received else ""))
    for number in range(4):
        stream.says(b"%d" % number)
    handler.on_pong(resumption.MARK + b"2")
    page.end(page._socket)  # type: ignore[arg-type]
    assert begun(page.channels, Handler(received)).written == again
