"""While messages go to and fro the forward's thread reads the connection, and loses nothing."""

from __future__ import annotations

import os
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from selectors import EVENT_READ as READ
from typing import Any

import pytest

from jlremote.ssh.channels import busy_poll
from jlremote.ssh.channels.busy_poll import BusyPoll
from jlremote.ssh.forward.forwarder import TunnelForward
from jlremote.ssh.transport.packet_reader import PacketReader, ReaderHandover
from tests.forward.parts import (
    MEGABYTE,
    Server,
    SwitchedGateway,
    ask,
    ask_at_once,
    connect,
    count_key_exchanges,
    same,
)
from tests.lab.sshd import SSHServer
from tests.link.fakes import until

QUICK = 100e-6


class Desk:
    """A loop, a connection and a clock, all of which do what the test says."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = 100.0
        self.socket = socket.socket()
        self.talked_at = 0.0
        self.offers: list[Callable[[], None]] = []
        self.is_lent = False
        self.is_ours = True
        self.watched: dict[int, Callable[[int], None]] = {}
        monkeypatch.setattr(busy_poll, "time", self)
        self.busy_poll = BusyPoll(self.watch, self.call)
        self.reader: Any = self

    def monotonic(self) -> float:
        return self.now

    def want(self, offer: Callable[[], None]) -> None:
        self.offers.append(offer)

    def borrow(self) -> bool:
        self.is_lent = True
        return True

    def poll(self) -> bool:
        return self.is_ours

    def give_back(self) -> None:
        assert self.is_lent
        self.is_lent = False

    def watch(self, _sock: Any, old: int, new: int, handler: Callable[[int], None]) -> None:
        assert self.watched == ({0: handler} if old else {})
        self.watched = {0: handler} if new else {}

    def call(self, action: Callable[[], None]) -> None:
        action()

    def talk(self, messages: int, seconds: float = QUICK) -> None:
        for _ in range(messages):
            self.now += seconds
            self.busy_poll.sent(self.reader)


@pytest.fixture
def desk(monkeypatch: pytest.MonkeyPatch) -> Iterator[Desk]:
    made = Desk(monkeypatch)
    yield made
    made.busy_poll.end()
    made.socket.close()


def test_a_conversation_keeps_the_loop_awake_until_it_pauses(desk: Desk) -> None:
    desk.talk(4)
    assert not desk.offers
    desk.talk(1)
    assert len(desk.offers) == 1
    assert desk.talked_at == desk.now
    assert desk.busy_poll.timeout() is None, "the connection is not lent yet"
    desk.offers.pop()()
    desk.talk(20)
    assert desk.is_lent
    assert desk.busy_poll.timeout() == 0
    assert not desk.offers, "it has what it wants"
    desk.now += 0.001
    assert desk.busy_poll.timeout() is None
    assert not desk.is_lent
    assert not desk.watched


def test_a_connection_that_was_closed_meanwhile_is_given_back(desk: Desk) -> None:
    desk.talk(5)
    desk.socket.close()
    desk.offers.pop()()
    assert not desk.is_lent
    assert not desk.watched
    assert desk.busy_poll.timeout() is None


def test_while_many_talk_the_loop_sleeps_but_goes_on_to_read(desk: Desk) -> None:
    desk.talk(5)
    desk.offers.pop()()
    desk.busy_poll.crowded()
    desk.talk(1)
    desk.now += 0.001
    most = desk.busy_poll.timeout()
    assert most
    assert desk.is_lent
    desk.now += most
    assert desk.busy_poll.timeout() is None
    assert not desk.is_lent


def test_one_conversation_after_many_keeps_the_loop_awake(desk: Desk) -> None:
    desk.busy_poll.crowded()
    desk.talk(5)
    desk.offers.pop()()
    assert desk.busy_poll.timeout()
    desk.talk(200)
    assert desk.busy_poll.timeout() == 0


def test_with_a_host_that_takes_a_millisecond_the_loop_sleeps(desk: Desk) -> None:
    desk.talk(1000, seconds=0.001)
    assert not desk.offers
    assert desk.talked_at == 0


def test_a_message_for_the_transport_ends_the_polling_for_a_while(desk: Desk) -> None:
    desk.talk(5)
    desk.offers.pop()()
    desk.is_ours = False
    desk.watched[0](READ)
    assert not desk.is_lent
    desk.talk(20)
    assert not desk.offers
    desk.talk(20)
    assert desk.offers


def test_an_offer_that_is_not_accepted_is_withdrawn() -> None:
    handover = ReaderHandover()
    offered: list[bool] = []
    handover.wanted = lambda: offered.append(True)
    handover.lend()
    assert offered
    assert not handover.borrow(), "too late"
    handover.lend()
    assert len(offered) == 1, "no thread wants it now"


def test_the_lender_waits_until_it_is_given_back() -> None:
    handover = ReaderHandover()
    handover.wanted = lambda: taken.append(handover.borrow())
    taken: list[bool] = []
    lender = threading.Thread(target=handover.lend)
    lender.start()
    until(lambda: taken == [True], "the loan")
    lender.join(0.2)
    assert lender.is_alive()
    handover.give_back()
    lender.join(5)
    assert not lender.is_alive()


class Polls:
    """Counts the times that a forward's thread read the connection."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.count = 0
        poll = PacketReader.poll

        def counted(reader: PacketReader) -> bool:
            self.count += 1
            return poll(reader)

        monkeypatch.setattr(PacketReader, "poll", counted)

    def await_more(self) -> None:
        """Return when it has read again."""
        before = self.count
        until(lambda: self.count > before, "a look at the connection")


@pytest.fixture
def polls(monkeypatch: pytest.MonkeyPatch) -> Polls:
    """Makes every exchange a conversation, and every pause a short one."""
    monkeypatch.setattr(busy_poll, "_QUICK", 60.0)
    monkeypatch.setattr(busy_poll, "_SETBACK", 0)
    return Polls(monkeypatch)


def talk(sock: socket.socket) -> None:
    """Exchange some small messages."""
    for _ in range(50):
        sock.sendall(b"?")
        assert sock.recv(1) == b"?"


@contextmanager
def conversation(port: int) -> Iterator[None]:
    """Exchange small messages all the time, until the connection ends."""
    over = threading.Event()

    def talk_on() -> None:
        try:
            with connect(port) as sock:
                while not over.is_set():
                    talk(sock)
        except (OSError, AssertionError):
            over.set()

    talker = threading.Thread(target=talk_on)
    talker.start()
    try:
        yield
        assert not over.is_set(), "the conversation broke off"
    finally:
        over.set()
        talker.join(30)


@pytest.fixture
def up(transport: Any, gateway: SwitchedGateway, echo_server: Server) -> SwitchedGateway:
    gateway.up(transport, echo_server.target)
    return gateway


def test_bytes_are_equal_beside_a_conversation_and_across_key_exchanges(
    up: SwitchedGateway, forward: TunnelForward, transport: Any, polls: Polls
) -> None:
    transport.packetizer.REKEY_BYTES = 3 * MEGABYTE
    transport.renegotiate_keys()
    exchanges = count_key_exchanges(transport)
    question = os.urandom(20 * MEGABYTE)
    with conversation(forward.local_port):
        polls.await_more()
        assert same(ask_at_once(forward.local_port, question), question)
        polls.await_more()
    assert len(exchanges) >= 3


def test_the_other_forwards_of_the_connection_are_served_meanwhile(
    up: SwitchedGateway, forward: TunnelForward, polls: Polls
) -> None:
    other = TunnelForward(0, up)
    other.start()
    with conversation(forward.local_port):
        polls.await_more()
        for number in range(50):
            assert ask(other.local_port, b"%d" % number) == b"%d" % number
        other.stop()
        polls.await_more()


def test_a_forward_that_ends_in_the_middle_gives_the_connection_back(
    up: SwitchedGateway, forward: TunnelForward, polls: Polls
) -> None:
    talking = TunnelForward(0, up)
    talking.start()
    with connect(talking.local_port) as sock:
        talk(sock)
        assert polls.count
        talking.stop()
        assert ask(forward.local_port, b"still there") == b"still there"


def test_an_sshd_that_ends_in_the_middle_is_noticed(
    up: SwitchedGateway,
    forward: TunnelForward,
    transport: Any,
    polls: Polls,
    forward_sshd: SSHServer,
) -> None:
    with connect(forward.local_port) as sock:
        talk(sock)
        assert polls.count
        forward_sshd.drop_connections()
        assert transport.ended.wait(10)
        with pytest.raises(ConnectionResetError):
            sock.recv(1)


def test_a_probe_is_answered_in_the_middle(
    up: SwitchedGateway, forward: TunnelForward, transport: Any, polls: Polls
) -> None:
    with conversation(forward.local_port):
        polls.await_more()
        began = time.monotonic()
        for _ in range(20):
            transport.probe(10)
        assert time.monotonic() - began < 10
        polls.await_more()
