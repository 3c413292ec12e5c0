"""A forward keeps its port, and nothing goes through before it is proved what is behind."""

from __future__ import annotations

import time
from dataclasses import replace

import pytest

from jlremote.errors import JlrError, LinkLost
from jlremote.jupyter.endpoint import WARNED_SECONDS, Endpoint
from jlremote.link.forwards import session_forward
from jlremote.link.forwards.session_forward import SessionForward
from jlremote.link.wire.states import State
from jlremote.place.host.addresses import Target
from tests.lab.programs import PATIENCE
from tests.link.fakes import KEY, Call, FakeConnection, Parts, is_in, new_endpoint, state_of, until


@pytest.fixture
def parts() -> Parts:
    return Parts()


@pytest.fixture
def forward(parts: Parts) -> SessionForward:
    return parts.forwards.add(KEY, 8888, new_endpoint(), parts.connection)


def test_a_remembered_endpoint_is_proved_before_bytes_flow(
    parts: Parts, forward: SessionForward
) -> None:
    remembered = new_endpoint("172.17.0.7")
    for port in (forward.local_port, 9999):
        again = parts.forwards.add(KEY, port, remembered, parts.connection, seen=False)
        with pytest.raises(JlrError, match="could not be checked in time"):
            again.wait(0)
        parts.settle(JlrError("it is gone", state="jupyter-dead"))
        until(is_in(State.JUPYTER_DEAD, again), "the verdict")


def test_an_event_of_its_container_starts_a_new_proof_during_a_proof(
    parts: Parts, forward: SessionForward
) -> None:
    connection = parts.connection
    parts.forwards.changed(connection, "docker", "container die decaf (name=other)")
    parts.forwards.changed(connection, "podman", "container died c0ffee (name=cont1)")
    parts.forwards.changed(FakeConnection(), "docker", "container die c0ffee (name=cont1)")
    assert parts.asked == []
    for _ in range(2):
        parts.forwards.changed(connection, "docker", "container die c0ffee (name=cont1)")
    until(lambda: len(parts.asked) == 2, "both looks")
    parts.settle(new_endpoint("172.17.0.9"))
    parts.settle(new_endpoint("172.17.0.9"))
    assert forward.wait(PATIENCE)[1].address == "172.17.0.9"
    parts.forwards.changed(connection, "docker", None)
    until(lambda: len(parts.asked) == 3, "the proof after a missed event")
    parts.settle(new_endpoint("172.17.0.9"))


def test_a_proof_that_was_overtaken_by_a_reconnect_counts_for_nothing(
    parts: Parts, forward: SessionForward
) -> None:
    first = parts.reconnect()
    until(lambda: len(parts.asked) == 1, "the first proof")
    second = parts.reconnect()
    parts.settle(new_endpoint("172.17.0.9"))
    assert forward.wait(PATIENCE) == (second, new_endpoint("172.17.0.9").target)
    parts.proofs_on(first).put(JlrError("as seen on the old connection", state="jupyter-dead"))
    until(lambda: parts.proofs_on(first).empty(), "the end of the first proof")
    assert forward.wait(0) == (second, new_endpoint("172.17.0.9").target)


def test_a_proof_that_was_overtaken_by_a_new_start_counts_for_nothing(
    parts: Parts, forward: SessionForward
) -> None:
    connection = parts.reconnect()
    until(lambda: len(parts.asked) == 1, "the proof")
    again = new_endpoint(pid=77)
    forward.replace(again, connection)
    parts.settle(JlrError("the one before", state="jupyter-dead"))
    until(lambda: parts.proofs_on(connection).empty(), "the end of the proof")
    assert forward.wait(0) == (connection, again.target)


def test_a_connection_that_breaks_during_the_proof_keeps_requests_waiting(
    parts: Parts, forward: SessionForward
) -> None:
    parts.reconnect()
    request = Call(lambda: forward.wait(PATIENCE))
    parts.settle(LinkLost("broke again"))
    second = parts.reconnect()
    parts.settle(new_endpoint())
    assert request.result() == (second, new_endpoint().target)


def test_a_proof_that_failed_is_tried_again_after_a_while_and_not_with_every_request(
    parts: Parts, forward: SessionForward, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(session_forward, "UNSURE_SECONDS", 3600.0)
    parts.reconnect()
    parts.settle(JlrError("the docker daemon does not run"))
    until(is_in(State.DOWN, forward), "the failure")
    for _ in range(5):
        with pytest.raises(JlrError, match="daemon does not run"):
            forward.wait(PATIENCE)
    assert len(parts.asked) == 1
    monkeypatch.setattr(session_forward, "UNSURE_SECONDS", 0.0)
    parts.settle(new_endpoint())
    assert forward.wait(PATIENCE)[1] == new_endpoint().target
    assert len(parts.asked) == 2


@pytest.mark.parametrize(
    ("left", "warns"),
    [(WARNED_SECONDS - 1, True), (60, True), (WARNED_SECONDS + 9, False), (-1, False)],
)
def test_it_warns_once_as_many_minutes_before(
    parts: Parts, forward: SessionForward, left: float, warns: bool
) -> None:
    near = replace(new_endpoint(), until=time.time() + left)
    forward.replace(near, parts.connection)
    first = Call(forward.heed_limit)
    if warns:
        parts.settle(near)
    first.result()
    forward.heed_limit()
    assert list(parts.warned.queue) == [(KEY[0], near.until)] * warns


def test_a_limit_that_was_put_off_is_warned_of_later(parts: Parts, forward: SessionForward) -> None:
    near = replace(new_endpoint(), until=time.time() + 60)
    forward.replace(near, parts.connection)
    warning = Call(forward.heed_limit)
    parts.settle(replace(near, until=time.time() + 7200))
    warning.result()
    assert parts.warned.empty()
    last = replace(near, until=time.time() + 90)
    forward.replace(last, parts.connection)
    warning = Call(forward.heed_limit)
    parts.settle(last)
    warning.result()
    assert list(parts.warned.queue) == [(KEY[0], last.until)]


PLACE = new_endpoint().place
OWN = Target("172.17.0.2", 6006)
RELAYED = Target("127.0.0.1", 6006, ("podman", "exec", "c0ffee", "python3"))


def new_port(parts: Parts) -> SessionForward:
    return parts.forwards.add(("cont1", 6006), 0, Endpoint(PLACE, 6006), parts.connection)


def seen_at(target: Target) -> Endpoint:
    return Endpoint(PLACE, 6006, target=target)


def test_many_refusals_in_a_row_cause_at_most_one_proof(parts: Parts) -> None:
    forward = parts.forwards.add(KEY, 8888, new_endpoint(), parts.connection)
    for _ in range(50):
        forward.recheck()
    assert parts.asked == []
    assert forward.wait(0)[1] == new_endpoint().target


@pytest.mark.parametrize(
    ("error", "state"),
    [
        (JlrError("nothing is there", state="closed"), State.CLOSED),
        (JlrError("another's", state="taken"), State.TAKEN),
    ],
)
def test_a_closed_or_taken_port_is_looked_for_at_the_next_request(
    error: JlrError, state: State, parts: Parts, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(session_forward, "UNSURE_SECONDS", 0.0)
    forward = new_port(parts)
    parts.settle(error)
    assert forward.settled(20)
    assert state_of(forward) == state
    parts.settle(seen_at(OWN))
    assert forward.wait(PATIENCE)[1] == OWN
    assert state_of(forward) == State.UP


@pytest.mark.parametrize(("target", "proofs"), [(OWN, 1), (RELAYED, 2)])
def test_only_a_port_that_others_may_take_is_proved_again(
    target: Target, proofs: int, parts: Parts, monkeypatch: pytest.MonkeyPatch
) -> None:
    forward = new_port(parts)
    parts.settle(seen_at(target))
    assert forward.wait(PATIENCE)[1] == target
    assert forward.wait(0)[1] == target  # a proof holds for a moment, for all who come with it
    monkeypatch.setattr(session_forward, "UNSURE_SECONDS", 0.0)
    parts.settle(seen_at(target))
    assert forward.wait(PATIENCE)[1] == target
    assert len(parts.asked) == proofs


def test_what_open_connections_lead_to_is_proved_after_they_were_opened(parts: Parts) -> None:
    forward = parts.forwards.add(KEY, 8888, new_endpoint("127.0.0.1"), parts.connection)
    assert forward.wait(0)[1] == new_endpoint("127.0.0.1").target
    confirmed = Call(lambda: forward.confirm(20))
    until(lambda: len(parts.asked) == 1, "the proof")
    with pytest.raises(JlrError, match="could not be checked in time"):
        forward.wait(0)
    parts.settle(JlrError("the server is gone", state="jupyter-dead"))
    with pytest.raises(JlrError, match="the server is gone"):
        confirmed.result()
