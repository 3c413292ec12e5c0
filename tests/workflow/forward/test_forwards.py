"""A session's forward is held on the port that it had, and put back if a later step fails."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import cast

import pytest

from jlremote.errors import Busy, LinkLost
from jlremote.link.client.link import Link
from jlremote.link.wire.status import ForwardKey, ForwardStatus, LinkStatus
from jlremote.ports.endpoint import Endpoint
from jlremote.storage import sessions
from jlremote.storage.sessions import PortRecord, SessionRecord
from jlremote.workflow.forward import forwards, local_ports
from tests.link.fakes import new_endpoint
from tests.workflow.parts import Notes

SERVER = new_endpoint()
TENSORBOARD = Endpoint(SERVER.place, 6006)
RECORD = SessionRecord("dgx", "cont1", "docker", 8901, ports=(PortRecord(6006, 7001),))


class FakeLink:
    """A link that forwards on any local port but those that are taken."""

    name = "dgx"

    def __init__(self, *taken: int) -> None:
        self.taken = set(taken)
        self.held: dict[ForwardKey, tuple[int, Endpoint]] = {}
        self.unseen: list[int] = []

    def forward(
        self, session: str, local_port: int, endpoint: Endpoint, *, seen: bool = True
    ) -> ForwardStatus:
        if local_port in self.taken:
            raise Busy(f"port {local_port} is taken")
        if not seen:
            self.unseen.append(local_port)
        key = (session, endpoint.further_port)
        self.held[key] = (local_port, endpoint)
        return ForwardStatus(*key, local_port, "up", 0.0, None, endpoint, None)

    def unforward(self, session: str, port: int | None = None) -> bool:
        return self.held.pop((session, port), None) is not None

    def status(self, *, connect: bool = False) -> LinkStatus:
        told = (
            ForwardStatus(*key, local, "up", 0.0, None, endpoint, None)
            for key, (local, endpoint) in self.held.items()
        )
        return LinkStatus("up", 0.0, None, tuple(told), ())


@pytest.fixture(autouse=True)
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    monkeypatch.setattr(local_ports, "_process_on", lambda _: "`vim` (process 7)")


@pytest.fixture
def notes() -> Notes:
    return Notes()


def held(
    link: FakeLink, to: Endpoint, notes: Notes, undo: ExitStack, exact: int | None = None
) -> int:
    """Return the local port on which `to` is held."""
    status = forwards.hold(cast(Link, link), "cont1", to, notes, undo, exact=exact)
    return status.local_port


@pytest.mark.parametrize(("to", "expected"), [(SERVER, 8888), (TENSORBOARD, 6006)])
def test_a_new_forward_gets_jupyters_port_or_its_own_number(
    to: Endpoint, expected: int, notes: Notes
) -> None:
    assert held(FakeLink(), to, notes, ExitStack()) == expected
    assert notes.notes == []


@pytest.mark.parametrize(("to", "expected"), [(SERVER, 8901), (TENSORBOARD, 7001)])
def test_a_forward_keeps_the_local_port_that_it_had(
    to: Endpoint, expected: int, notes: Notes
) -> None:
    sessions.save(RECORD)
    assert held(FakeLink(), to, notes, ExitStack()) == expected


def test_a_port_that_was_another_sessions_is_said(notes: Notes) -> None:
    sessions.save(replace(RECORD, name="other", local_port=9000, forwarded=False))
    assert held(FakeLink(), SERVER, notes, ExitStack(), exact=9000) == 9000
    [note] = notes.notes
    assert note.startswith("port 9000 belonged to `dgx/other`")
    assert "`cont1-dgx.localhost:9000`" in note


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
