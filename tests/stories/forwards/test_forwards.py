"""A session's forward is held on the port that it had, and put back if a later step fails."""

from __future__ import annotations

from contextlib import ExitStack
from typing import cast

import pytest

from jlremote.errors import Busy, LinkLost
from jlremote.forwards import local_ports
from jlremote.jupyter.endpoint import Endpoint
from jlremote.link.client.link import Link
from tests.link.fakes import new_endpoint
from tests.stories.parts import FakeLink, Notes

SERVER = new_endpoint()
TENSORBOARD = Endpoint(SERVER.place, 6006)


@pytest.fixture
def notes(monkeypatch: pytest.MonkeyPatch) -> Notes:
    monkeypatch.setattr(local_ports, "_process_on", lambda _: "`vim` (process 7)")
    return Notes()


def held(
    link: FakeLink, to: Endpoint, notes: Notes, undo: ExitStack, exact: int | None = None
) -> int:
    """Return the local port on which `to` is held."""
    status = local_ports.hold(cast(Link, link), "cont1", to, notes, undo, exact=exact)
    return status.local_port


@pytest.mark.parametrize(("to", "first"), [(SERVER, 8888), (TENSORBOARD, 6006)])
def test_when_every_port_is_taken_the_error_says_which_were_tried(
    to: Endpoint, first: int, notes: Notes
) -> None:
    link = FakeLink(*range(first, first + local_ports.PORTS))
    with pytest.raises(Busy, match="no local port is free") as refused:
        held(link, to, notes, ExitStack())
    assert str(first) in (refused.value.hint or "")
    assert link.held == {}


@pytest.mark.parametrize("to", [SERVER, TENSORBOARD])
def test_a_forward_from_before_is_put_back_and_proved_first(to: Endpoint, notes: Notes) -> None:
    link = FakeLink()
    link.forward("cont1", 9001, to)
    with ExitStack() as undo:
        assert held(link, to, notes, undo) != 9001
    assert link.held == {("cont1", to.further_port): (9001, to)}
    assert link.unseen == [9001]


@pytest.mark.parametrize(
    ("to", "named"), [(SERVER, "the forward of `cont1`"), (TENSORBOARD, "the forward of port 6006")]
)
def test_a_forward_that_cannot_be_put_back_is_reported(
    to: Endpoint, named: str, notes: Notes, monkeypatch: pytest.MonkeyPatch
) -> None:
    link = FakeLink()

    def lost(*_: object) -> bool:
        raise LinkLost("the link ended")

    monkeypatch.setattr(link, "unforward", lost)
    with ExitStack() as undo:
        held(link, to, notes, undo)
    assert notes.notes == [f"cannot restore {named}: the link ended"]
