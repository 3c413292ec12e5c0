"""A forward keeps its port, and nothing goes through before it is proved what is behind."""

from __future__ import annotations

import queue
import time
from collections.abc import Iterator
from dataclasses import replace

import pytest

from jlremote.errors import Busy, JlrError, LinkLost
from jlremote.jupyter.endpoint import WARNED_SECONDS
from jlremote.jupyter.survey import JupyterDead
from jlremote.link.forwards import session_forward
from jlremote.link.forwards.session_forward import SessionForward, TimeLimit
from jlremote.link.wire.states import State
from tests.lab.programs import PATIENCE
from tests.link.fakes import Call, FakeConnection, new_endpoint, until
from tests.link.parts import KEY, Parts, is_in


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
        parts.settle(JupyterDead("it is gone"))
        until(is_in(State.JUPYTER_DEAD, again), "the verdict")


def test_a_time_limit_is_told_once_whatever_ports_were_tried(parts: Parts) -> None:
    until_ = time.time() + WARNED_SECONDS + 0.3
    limited = replace(new_endpoint(), until=until_)
    for _ in range(3):
        with pytest.raises(Busy):
            parts.forwards.add(KEY, 1, limited, parts.connection)
    for port in (8888, 9999):
        parts.forwards.add(KEY, port, limited, parts.connection)
    for _ in range(5):
        parts.settle(limited)
    assert parts.warned.get(timeout=PATIENCE) == (KEY[0], until_)
    with pytest.raises(queue.Empty):
        parts.warned.get(timeout=0.5)


def test_a_forward_that_was_stopped_tells_of_no_time_limit(parts: Parts) -> None:
    """Although its proof is still under way."""
    limited = replace(new_endpoint(), until=time.time() + 60)
    forward = parts.forwards.add(KEY, 8888, new_endpoint(), parts.connection)
    forward.prove_again(parts.connection)
    parts.forwards.remove(KEY)
    for _ in range(3):
        parts.settle(limited)
    assert forward.settled(PATIENCE)
    with pytest.raises(queue.Empty):
        parts.warned.get(timeout=0.5)


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
    parts.proofs_on(first).put(JupyterDead("as seen on the old connection"))
    until(lambda: parts.proofs_on(first).empty(), "the end of the first proof")
    assert forward.wait(0) == (second, new_endpoint("172.17.0.9").target)


def test_a_proof_that_was_overtaken_by_a_new_start_counts_for_nothing(
    parts: Parts, forward: SessionForward
) -> None:
    connection = parts.reconnect()
    until(lambda: len(parts.asked) == 1, "the proof")
    again = new_endpoint(pid=77)
    forward.replace(again, connection)
    parts.settle(JupyterDead("the one before"))
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


def test_a_proof_that_failed_is_tried_again_at_the_next_request(
    parts: Parts, forward: SessionForward, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(session_forward, "UNSURE_SECONDS", 0.0)
    parts.reconnect()
    parts.settle(JlrError("the docker daemon does not run"))
    until(is_in(State.DOWN, forward), "the failure")
    assert len(parts.asked) == 1
    parts.settle(new_endpoint())
    assert forward.wait(PATIENCE)[1] == new_endpoint().target
    assert len(parts.asked) == 2


def test_a_failed_proof_is_not_repeated_with_every_request(
    parts: Parts, forward: SessionForward, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(session_forward, "UNSURE_SECONDS", 3600.0)
    parts.reconnect()
    parts.settle(JlrError("the docker daemon does not run"))
    for _ in range(5):
        with pytest.raises(JlrError, match="daemon does not run"):
            forward.wait(PATIENCE)
    assert len(parts.asked) == 1


@pytest.fixture
def warned() -> queue.Queue[float]:
    return queue.Queue()


@pytest.fixture
def limit(warned: queue.Queue[float], monkeypatch: pytest.MonkeyPatch) -> Iterator[TimeLimit]:
    monkeypatch.setattr(session_forward, "_TURN_SECONDS", 0.05)
    limit = TimeLimit(warned.put)
    yield limit
    limit.set(None)


def test_it_warns_once_as_many_minutes_before(limit: TimeLimit, warned: queue.Queue[float]) -> None:
    until = time.time() + WARNED_SECONDS + 0.3
    limit.set(until)
    assert warned.get(timeout=PATIENCE) == until
    assert until - time.time() <= WARNED_SECONDS
    limit.set(until)
    near = time.time() + 60
    limit.set(near)
    assert warned.get(timeout=PATIENCE) == near, "the first one twice"


def test_a_limit_that_was_put_off_or_is_over_is_not_warned_of(
    limit: TimeLimit, warned: queue.Queue[float]
) -> None:
    limit.set(time.time() + WARNED_SECONDS + 0.1)
    limit.set(time.time() + WARNED_SECONDS + 3600)
    limit.set(time.time() - 1)
    last = time.time() + 60
    limit.set(last)
    assert warned.get(timeout=PATIENCE) == last
    assert warned.empty()
