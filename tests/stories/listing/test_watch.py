"""`jlr list --watch` looks at a session without connecting or waiting."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, cast

import pytest

from jlremote.laptop import sessions
from jlremote.laptop.sessions import SessionRecord
from jlremote.link.client.link import Link
from jlremote.link.wire.states import ForwardStatus, LinkStatus
from jlremote.listing import watch
from jlremote.listing.session_report import of_forward
from tests.link.fakes import new_endpoint

RECORD = SessionRecord("dgx", "cont1", "docker", 8901)
UP = ForwardStatus("cont1", None, 8901, "up", 0.0, None, new_endpoint(), None)


class FakeLink:
    """A link with some forwards."""

    told = LinkStatus("up", 0.0, None, (), ())

    def status(self) -> LinkStatus:
        return self.told


def test_a_clusters_job_is_asked_for_while_it_waits_and_when_it_begins(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    link, moment, asked = FakeLink(), 0.0, 0
    monkeypatch.setattr(watch.SessionView, "_ask_kernels", lambda *_: None)
    sessions.save(RECORD)
    up = replace(of_forward(RECORD, UP, "token"), job="7", node="node1", time_left=100)
    waits = replace(up, state="queued", url=None, node=None, time_left=None)

    def ask() -> Any:
        nonlocal asked
        asked += 1
        return up if begun else waits

    monkeypatch.setattr("time.monotonic", lambda: moment)
    begun = False
    seen = watch.SessionView(cast(Link, link), RECORD, waits, ask)
    while moment < 600:
        assert seen.now() == waits
        moment += 1
    # after 2, 6, 14, 30 and 62 s, and then once a minute
    assert asked == 5 + (599 - 62) // 60
    begun, link.told = True, LinkStatus("up", 0.0, None, (UP,), ())
    shown = seen.now()
    assert (shown.state, shown.job, shown.node, shown.time_left) == ("up", "7", "node1", 100)
    before, moment = asked, moment + 30
    assert seen.now().time_left == 70
    assert asked == before
