"""A far end is proved again once there is a reason, and no more often than that."""

from __future__ import annotations

import pytest

from jlremote.errors import JlrError
from jlremote.jupyter.endpoint import Endpoint
from jlremote.link.forwards import session_forward
from jlremote.link.forwards.session_forward import SessionForward
from jlremote.link.wire.states import State
from jlremote.place.host.addresses import Target
from tests.lab.programs import PATIENCE
from tests.link.fakes import Call, new_endpoint, until
from tests.link.parts import KEY, Parts, state_of

PLACE = new_endpoint().place
OWN = Target("172.17.0.2", 6006)
RELAYED = Target("127.0.0.1", 6006, ("podman", "exec", "c0ffee", "python3"))


@pytest.fixture
def parts() -> Parts:
    return Parts()


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
