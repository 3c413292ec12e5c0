"""`jlr forward`: further ports of a session are held, listed and released."""

from __future__ import annotations

from dataclasses import replace

import pytest

from jlremote.errors import NotFound, Usage
from jlremote.hosts import halted
from jlremote.hosts.context import Context
from jlremote.hosts.links import ASKS_NOTHING, Unreached
from jlremote.jupyter.discovery import Findings
from jlremote.jupyter.survey import Survey
from jlremote.laptop import sessions
from jlremote.laptop.sessions import PortRecord, SessionRecord
from jlremote.link.wire.states import ForwardStatus
from jlremote.place.runtimes.runtime import Container
from jlremote.sessions import further_ports
from tests.link.fakes import new_endpoint, new_server
from tests.stories.parts import FakeLink, context

PLACE = new_endpoint().place
HERE = Container(PLACE.container_id, PLACE.name, True, PLACE.started_at, addresses=("a",))
FOUND = Survey(HERE, Findings("/tmp/jlr-0/cont1", "", None, (new_server(),)))
RECORD = SessionRecord("dgx", "cont1", "docker", 8901, ports=(PortRecord(7860, 7861),))


class CheckedLink(FakeLink):
    """A link that checks what it holds."""

    def check(self, session: str, port: int | None = None) -> ForwardStatus | None:
        return self.status().forward(session, port)


@pytest.fixture(autouse=True)
def link(monkeypatch: pytest.MonkeyPatch) -> CheckedLink:
    made = CheckedLink()
    monkeypatch.setattr(further_ports, "link_of", lambda *_: made)
    monkeypatch.setattr(further_ports, "status_of", lambda link, *_: link.status())
    monkeypatch.setattr(further_ports, "survey", lambda *_: FOUND)
    sessions.save(RECORD)
    return made


def ports() -> list[tuple[int, int]]:
    """Return the recorded ports of the session, and their local ports."""
    record = sessions.find("dgx", "cont1")
    assert record is not None
    return [(port.port, port.local_port) for port in record.ports]


def test_a_session_that_was_stopped_gets_no_port(link: CheckedLink) -> None:
    sessions.save(replace(RECORD, forwarded=False, runtime="none"))
    with pytest.raises(NotFound, match="`dgx/cont1` does not run") as stopped:
        further_ports.add("cont1", 6006, context())
    assert "`jlr start dgx cont1 --runtime none`" in (stopped.value.hint or "")
    assert link.held == {}


@pytest.mark.parametrize("reached", [True, False])
def test_a_stopped_session_is_looked_for_only_on_a_host_that_is_reached_unasked(
    reached: bool, link: CheckedLink, monkeypatch: pytest.MonkeyPatch
) -> None:
    def gone(*_: object) -> None:
        raise NotFound("the container `cont1` is gone")

    def link_of(_: SessionRecord, its: Context) -> CheckedLink:
        assert its.asker is ASKS_NOTHING
        return link

    found = link.status() if reached else Unreached("down", None, "no route to dgx")
    monkeypatch.setattr(further_ports, "link_of", link_of)
    monkeypatch.setattr(further_ports, "status_of", lambda *_: found)
    monkeypatch.setattr(halted, "check", gone)
    sessions.save(replace(RECORD, forwarded=False))
    with pytest.raises(NotFound, match="is gone" if reached else "does not run"):
        further_ports.add("cont1", 6006, context())


def test_a_record_that_cannot_be_written_releases_the_port(
    link: CheckedLink, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(record: SessionRecord) -> None:
        raise NotFound("the disk is full")

    monkeypatch.setattr(sessions, "save", fail)
    with pytest.raises(NotFound, match="the disk is full"):
        further_ports.add("cont1", 6006, context())
    assert link.held == {}


def test_a_port_of_several_sessions_is_removed_only_by_a_sessions_name() -> None:
    sessions.save(replace(RECORD, name="cont2"))
    before = sessions.load_all()
    with pytest.raises(Usage, match="needs the name of a session: there are 2") as refused:
        further_ports.remove(None, 7860, context())
    for name in ("dgx/cont1", "dgx/cont2"):
        assert f"`jlr forward {name} --remove 7860`" in (refused.value.hint or "")
    assert sessions.load_all() == before
    further_ports.remove("dgx/cont1", 7860, context())
    assert ports() == []
