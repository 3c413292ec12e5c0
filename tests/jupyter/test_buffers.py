"""What a Jupyter server keeps for the pages of a kernel, on Jupyter's own methods."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from jupyter_server.services.kernels.kernelmanager import MappingKernelManager

from jlremote.jupyter.in_server import buffers
from jlremote.jupyter.in_server.buffers import Buffers


class Stream:
    """A channel of a page."""

    def __init__(self) -> None:
        self.receive: Any = None
        self.ended = False
        self.socket = SimpleNamespace(closed=False)

    def on_recv(self, receive: Any) -> None:
        self.receive = receive

    def closed(self) -> bool:
        return self.ended

    def close(self) -> None:
        self.ended = True


class Manager(MappingKernelManager):
    """One kernel, `k`, with pages that come and go as `keep` has it."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)  # type: ignore[no-untyped-call]
        self.kernel = SimpleNamespace(ports=[1, 2])
        self._kernels["k"] = self.kernel
        self._kernel_connections["k"] = 0
        self.buffers = Buffers(MappingKernelManager)

    def stop_buffering(self, kernel_id: str) -> None:
        self.buffers.end(self, kernel_id)

    def goes(self, page: str, *, lost: bool = True) -> Stream:
        """Let a page go, and return its channel."""
        stream = Stream()
        self.buffers.begin(self, "k", page, {"iopub": stream})
        self._kernel_buffers["k"]["lost"] = lost
        return stream

    def comes(self, page: str) -> list[bytes] | None:
        """Return what was kept for a page."""
        kept = self.buffers.take_up(self, "k", page)
        return None if kept is None else [message[0] for _, message in kept["buffer"]]


@pytest.fixture
def later(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Return what is to be done later."""
    calls: list[Any] = []
    loop = SimpleNamespace(call_later=lambda _, *call: calls.append(call))
    monkeypatch.setattr(buffers, "IOLoop", SimpleNamespace(current=lambda: loop))
    return calls


@pytest.fixture
def manager(later: list[Any]) -> Manager:
    return Manager()


@pytest.mark.parametrize("order", ["ab", "ba"])
def test_each_lost_page_gets_its_own_in_whatever_order_they_come(
    manager: Manager, order: str
) -> None:
    streams = {page: manager.goes(page) for page in "ab"}
    for page, stream in streams.items():
        stream.receive([page.encode()])
    assert [manager.comes(page) for page in order] == [[page.encode()] for page in order]
    assert not any(stream.ended for stream in streams.values())


def test_of_a_page_that_was_closed_nothing_is_kept_once_another_comes(manager: Manager) -> None:
    left, lost = manager.goes("left", lost=False), manager.goes("lost")
    assert left.ended
    lost.receive([b"x"])
    assert manager.comes("new") is None
    assert manager.comes("lost") == [b"x"]
    closed = manager.goes("closed", lost=False)
    assert manager.comes("new") is None
    assert closed.ended


def test_the_oldest_goes_where_too_much_is_kept(
    manager: Manager, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(buffers, "MOST_BYTES", 10)
    monkeypatch.setattr(buffers, "MOST_PAGES", 1)
    streams = [manager.goes(page) for page in "abc"]
    assert [stream.ended for stream in streams] == [True, False, False]
    for number in range(11):
        streams[2].receive([b"%x" % number])
    assert manager.comes("c") == [b"6", b"7", b"8", b"9", b"a"]


def test_a_page_is_not_waited_for_for_ever_while_another_one_is_there(
    manager: Manager, later: list[Any]
) -> None:
    aside, last = manager.goes("aside"), manager.goes("last")
    for again in (False, True):
        manager._kernel_connections["k"] = int(again)
        calls, later[:] = list(later), []
        assert len(calls) == 2
        for call, *arguments in calls:
            call(*arguments)
        assert (aside.ended, last.ended) == (again, again)
    assert not later


def test_nothing_is_kept_of_a_kernel_that_has_ended_or_has_other_ports(manager: Manager) -> None:
    aside, last = manager.goes("aside"), manager.goes("last")
    manager.kernel.ports = [3, 4]
    assert manager.comes("aside") is None
    assert aside.ended
    manager.stop_buffering("k")
    assert last.ended
