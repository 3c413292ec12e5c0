"""sshd counts commands, relays and mounts together, and so do we."""

from __future__ import annotations

import sys
import threading
from contextlib import ExitStack
from typing import Any

from jlremote.host.addresses import Target
from jlremote.ssh.channels.session_slots import KEPT, LASTING, SessionSlots
from jlremote.ssh.connection import SSHConnection
from jlremote.ssh.forward.connection_router import WaitLimits
from jlremote.ssh.forward.forwarder import TunnelForward
from tests.forward.parts import Server, SwitchedGateway, ask
from tests.link.fakes import until


def started(gateway: SwitchedGateway, stack: ExitStack) -> TunnelForward:
    forward = TunnelForward(0, gateway, limits=WaitLimits(connection=10))
    stack.callback(forward.stop)
    forward.start()
    return forward


def is_served(port: int) -> bool:
    try:
        return ask(port, b"hello") == b"hello"
    except OSError:  # closed, and so early that not even asking was possible
        return False


def test_one_relay_too_many_is_told_so_and_commands_still_run(
    transport: Any, gateway: SwitchedGateway, echo_server: Server
) -> None:
    gateway.up(transport, Target("127.0.0.1", echo_server.port, (sys.executable,)))
    commands = SSHConnection(transport)
    with ExitStack() as stack:
        forwards = [started(gateway, stack) for _ in range(KEPT)]
        for forward in forwards:
            assert ask(forward.local_port, b"hello") == b"hello"
        one_more = started(gateway, stack)
        assert not is_served(one_more.local_port)
        assert "open over this connection already" in (one_more.failure or "")
        statuses: list[int] = []
        callers = [
            threading.Thread(
                target=lambda: statuses.append(
                    commands.execute(b"sleep 0.1", lambda *_: None, timeout=30)
                )
            )
            for _ in range(6)
        ]
        for caller in callers:
            caller.start()
        for caller in callers:
            caller.join(30)
        assert statuses == [0] * 6
        forwards[0].stop()
        until(lambda: is_served(one_more.local_port), "the session that is free now")


class LastingSession:
    """Knows whether it was told that there is a session for it."""

    def __init__(self) -> None:
        self.has_one = False

    def granted(self) -> None:
        self.has_one = True


def test_a_relay_waits_for_a_command_to_end_and_goes_before_further_ones() -> None:
    slots = SessionSlots()
    assert all(slots.take(0) for _ in range(8))
    assert not slots.take(0)
    keepers = [LastingSession() for _ in range(3)]
    assert all(slots.reserve(keeper) for keeper in keepers)
    assert [keeper.has_one for keeper in keepers] == [True, True, False]
    slots.give_back()
    assert keepers[2].has_one
    assert not slots.take(0)
    slots.release(keepers[0])
    slots.release(keepers[0])
    assert slots.take(0)
    assert not slots.take(0)


def test_lasting_sessions_leave_two_for_commands() -> None:
    slots = SessionSlots()
    assert all(slots.begin_lasting() and slots.take(0) for _ in range(LASTING))
    assert not slots.begin_lasting()
    keepers = [LastingSession() for _ in range(KEPT - LASTING)]
    assert all(slots.reserve(keeper) for keeper in keepers)
    assert not slots.reserve(LastingSession())
    assert slots.take(0)
    assert slots.take(0)
    slots.end_lasting()
    assert slots.reserve(LastingSession())


class PreemptibleSession:
    """Counts how often it was asked to end."""

    def __init__(self) -> None:
        self.calls = 0

    def preempt(self) -> None:
        self.calls += 1


def test_a_preemptible_session_ends_for_the_last_free_slot() -> None:
    slots = SessionSlots()
    borrower = PreemptibleSession()
    assert slots.borrow(borrower)
    assert slots.lasting() == 0
    assert all(slots.reserve(LastingSession()) for _ in range(KEPT))
    assert slots.take(0)
    assert borrower.calls == 0
    assert not slots.take(0)
    assert borrower.calls == 1
    slots.give_up(borrower)
    assert slots.take(0)
    assert not slots.borrow(borrower)


def test_a_relay_ends_a_preemptible_session_too() -> None:
    slots = SessionSlots()
    borrower = PreemptibleSession()
    assert all(slots.take(0) for _ in range(8))
    assert slots.borrow(borrower)
    keepers = [LastingSession() for _ in range(2)]
    assert all(slots.reserve(keeper) for keeper in keepers)
    assert [keeper.has_one for keeper in keepers] == [True, False]
    assert borrower.calls == 1
    slots.give_up(borrower)
    assert keepers[1].has_one
