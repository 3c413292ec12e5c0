"""The status of a link, read from its message."""

from __future__ import annotations

from typing import Any

import pytest

from jlremote.errors import JlrError, LinkLost
from jlremote.jupyter.endpoint import Endpoint
from jlremote.link.wire.states import Condition, State
from jlremote.link.wire.status import link_status
from tests.link.fakes import new_endpoint

SERVER = new_endpoint()
TENSORBOARD = Endpoint(SERVER.place, 6006)


def forward(endpoint: Endpoint, session: str = "cont1") -> dict[str, Any]:
    facts = {
        "session": session,
        "port": endpoint.further_port,
        "local_port": 9000,
        "failure": None,
        "endpoint": endpoint.to_json(),
    }
    return facts | Condition(State.UP, since=1.0).to_json()


def message(*forwards: dict[str, Any]) -> dict[str, Any]:
    held: dict[str, Any] = {"forwards": list(forwards), "mounts": [], "work": []}
    held["notes"] = ["`Compression` is left out"]
    return Condition(State.UP, since=2.0).to_json() | held


def test_a_forward_is_found_by_its_session_and_its_further_port() -> None:
    told = message(forward(SERVER), forward(TENSORBOARD), forward(SERVER, "cont2"))
    status = link_status(told)
    assert [one.endpoint for one in status.forwards] == [SERVER, TENSORBOARD, SERVER]
    assert (found := status.forward("cont1")) is not None
    assert found.server == SERVER.server
    assert (further := status.forward("cont1", 6006)) is not None
    assert further.endpoint == TENSORBOARD
    assert status.further("cont1") == (further,)
    assert status.further("cont2") == ()
    assert status.forward("cont3") is None
    assert status.forward("cont1", 7860) is None


def test_a_forward_is_up_since_its_connection_is() -> None:
    closed = forward(TENSORBOARD) | {"state": "closed"}
    up, down = link_status(message(forward(SERVER), closed)).forwards
    assert (up.since, down.since) == (2.0, 1.0)


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
