"""A session is forwarded again after its link has ended, if it is still what it was."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import replace
from typing import cast

import pytest

from jlremote.errors import Busy, JlrError
from jlremote.forwards import local_ports
from jlremote.jupyter.discovery import Findings
from jlremote.jupyter.endpoint import Server
from jlremote.jupyter.survey import Survey
from jlremote.laptop.sessions import PortOwner, PortRecord, SessionRecord
from jlremote.link.client.link import Link
from jlremote.place.runtimes.runtime import Container
from tests.link.fakes import new_endpoint, new_server
from tests.stories.parts import FakeLink

PLACE = new_endpoint().place
HERE = Container(
    PLACE.container_id, PLACE.name, running=True, started_at=PLACE.started_at, addresses=("a",)
)
RECORD = SessionRecord("dgx", "cont1", "docker", 8901, ports=(PortRecord(6006, 7001),))


def findings(*servers: Server, ended: str = "") -> Findings:
    return Findings("/tmp/jlr-0/cont1", "", None, servers, ended)


def restored(
    monkeypatch: pytest.MonkeyPatch, link: FakeLink, found: Survey, record: SessionRecord = RECORD
) -> int:
    """Restore a session; return its local port."""
    monkeypatch.setattr(local_ports, "survey", lambda *_: found)
    return local_ports.bring_back(cast(Link, link), record).local_port


@pytest.mark.parametrize(
    ("found", "state"),
    [
        (findings(), "jupyter-dead"),
        (findings(ended="idle"), "idle-stopped"),
        (None, "jupyter-dead"),
    ],
)
def test_further_ports_come_back_though_jupyter_does_not(
    found: Findings | None, state: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    link = FakeLink()
    with pytest.raises(JlrError, check=lambda error: error.state == state):
        restored(monkeypatch, link, Survey(HERE, found))
    assert list(link.held) == [("cont1", 6006)]


def test_a_local_port_that_was_given_to_another_session_meanwhile_stays_there(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for local in (8901, 7001):
        local_ports.claim(PortOwner(local, "lab", "two", None), ExitStack())
    link = FakeLink()
    with pytest.raises(Busy, match="port 8901 belongs to `lab/two` now") as busy:
        restored(monkeypatch, link, Survey(HERE, findings(new_server())))
    assert (busy.value.hint or "").startswith("`jlr start dgx cont1`")
    assert link.held == {}


def test_a_server_that_lets_anyone_in_is_not_forwarded_unless_that_was_allowed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    opened = Survey(HERE, findings(replace(new_server(), token="")))

    def refuse(link: Link, forward: object, *, allowed: bool) -> None:
        if not allowed:
            raise JlrError("anyone can run code")

    monkeypatch.setattr(local_ports, "refuse_open", refuse)
    link = FakeLink()
    with pytest.raises(JlrError):
        restored(monkeypatch, link, opened)
    assert ("cont1", None) not in link.held
    assert restored(monkeypatch, link, opened, replace(RECORD, open_allowed=True)) == 8901
