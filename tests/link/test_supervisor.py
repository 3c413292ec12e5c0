"""One connection, made at the first need, and made again when it is lost."""

from __future__ import annotations

import pytest

from jlremote.errors import (
    Authentication,
    ConnectionRefused,
    JlrError,
    NeedsAuthentication,
)
from jlremote.link.connection.supervisor import IN_BACKGROUND
from jlremote.link.wire.states import State
from tests.lab.programs import PATIENCE
from tests.link.fakes import Call, FakeConnection, FakePerson, until, waiters
from tests.link.parts import Watched


def test_all_waiting_callers_get_the_error_of_the_attempt(watched: Watched) -> None:
    watched.wanted = False
    calls = [Call(lambda: watched.supervisor.connection(FakePerson())) for _ in range(5)]
    until(lambda: waiters(watched.supervisor._changed) == 5, "4 callers and the watcher")
    watched.dialer.outcomes.put(ConnectionRefused("no listener there", hint="look"))
    for call in calls:
        with pytest.raises(ConnectionRefused, match="no listener there") as caught:
            call.result()
        assert caught.value.hint == "look"
    assert len(watched.dialer.askers) == 1
    assert watched.state is State.DOWN


def test_a_caller_with_a_terminal_tries_again_after_one_without(watched: Watched) -> None:
    watched.wanted = False
    first, second = FakePerson(), FakePerson("password")
    unattended = Call(lambda: watched.supervisor.connection(first))
    watched.dialed(1)
    attended = Call(lambda: watched.supervisor.connection(second))
    until(lambda: waiters(watched.supervisor._changed) == 2, "the second caller and the watcher")
    watched.dialer.outcomes.put(NeedsAuthentication("a password is needed"))
    with pytest.raises(NeedsAuthentication):
        unattended.result()
    connection = FakeConnection()
    watched.dialer.outcomes.put(connection)
    assert attended.result() is connection
    assert watched.dialer.askers == [first, second]


def test_a_lost_connection_is_made_again_in_the_background(watched: Watched) -> None:
    watched.connect().close()
    watched.dialed(2)
    assert watched.dialer.askers[1] is IN_BACKGROUND
    assert watched.state is State.RECONNECTING
    waiting = Call(lambda: watched.supervisor.wait(PATIENCE))
    again = FakeConnection()
    watched.dialer.outcomes.put(again)
    assert waiting.result() is again
    assert watched.ups[1:] == [again]


def test_a_lost_connection_without_forwards_is_not_made_again(watched: Watched) -> None:
    connection = watched.connect()
    watched.wanted = False
    connection.close()
    until(lambda: watched.state is State.DOWN, "the end of it")
    assert len(watched.dialer.askers) == 1


def test_failed_attempts_leave_it_reconnecting_since_the_loss(watched: Watched) -> None:
    watched.connect().close()
    watched.dialed(2)
    since = watched.supervisor.condition.since
    watched.dialer.outcomes.put(ConnectionRefused("not yet"))
    watched.dialed(3)
    condition = watched.supervisor.condition
    assert (condition.state, condition.since) == (State.RECONNECTING, since)
    assert isinstance(condition.error, ConnectionRefused)


@pytest.mark.parametrize("refusal", [NeedsAuthentication("a code"), Authentication("no key fits")])
def test_a_reconnect_that_is_refused_waits_for_a_person(
    watched: Watched, refusal: Authentication
) -> None:
    watched.connect().close()
    watched.dialer.outcomes.put(refusal)
    until(lambda: watched.state is State.NEEDS_AUTH, "the refusal")
    # Waiting requests fail at once, and nothing is tried until a person can be asked.
    with pytest.raises(type(refusal), match=refusal.message):
        watched.supervisor.wait(PATIENCE)
    assert len(watched.dialer.askers) == 2
    person, again = FakePerson("123456"), FakeConnection()
    watched.dialer.outcomes.put(again)
    assert watched.supervisor.connection(person) is again
    assert watched.dialer.askers[2:] == [person]
    assert watched.state is State.UP


def test_a_command_joins_a_reconnect_under_way(watched: Watched) -> None:
    watched.connect().close()
    watched.dialed(2)
    joined = Call(lambda: watched.supervisor.connection(FakePerson()))
    again = FakeConnection()
    watched.dialer.outcomes.put(again)
    assert joined.result() is again
    assert len(watched.dialer.askers) == 2


def test_the_end_closes_the_connection_and_wakes_waiting_requests(watched: Watched) -> None:
    connection = watched.connect()
    watched.supervisor.end()
    assert connection.gone.is_set()
    with pytest.raises(JlrError):
        watched.supervisor.wait(PATIENCE)
    assert len(watched.dialer.askers) == 1
