"""A condition says since when it lasts and why, and keeps nothing else alive."""

from __future__ import annotations

import pytest

from jlremote.errors import JlrError, LinkLost
from jlremote.link.wire.states import Condition, State


def failed() -> JlrError:
    """Return an error that was raised, with a cause."""
    with pytest.raises(LinkLost) as caught:
        raise LinkLost("the connection broke", hint="look at the network") from OSError("reset")
    return caught.value


def test_a_condition_keeps_an_error_without_its_frames() -> None:
    kept = Condition(State.UP).then(State.DOWN, failed()).error
    assert kept is not None
    assert (kept.__traceback__, kept.__cause__, kept.__context__) == (None, None, None)
    assert (type(kept), kept.message, kept.hint) == (
        LinkLost,
        "the connection broke",
        "look at the network",
    )


def test_the_message_of_a_condition_has_its_error_in_words() -> None:
    assert Condition(State.UP, since=2.0).to_json() == {
        "state": "up",
        "since": 2.0,
        "detail": None,
        "hint": None,
    }
    told = Condition(State.DOWN, failed(), 2.0).to_json()
    assert (told["detail"], told["hint"]) == ("the connection broke", "look at the network")
