"""`jlr list --watch` looks at a session without connecting or waiting."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pytest

from jlremote.errors import JlrError
from jlremote.jupyter.api import Kernel
from jlremote.laptop import sessions
from jlremote.laptop.sessions import SessionRecord
from jlremote.link.client.link import Link
from jlremote.link.wire.status import ForwardStatus, LinkStatus
from jlremote.listing import watch
from jlremote.listing.session_report import of_forward
from tests.link.fakes import new_endpoint

RECORD = SessionRecord("dgx", "cont1", "docker", 8901)
UP = ForwardStatus("cont1", None, 8901, "up", 0.0, None, new_endpoint(), None)
KERNELS = (Kernel("a.ipynb", "busy", "2026-01-01T00:00:00Z"),)


class FakeLink:
    """A link in some state, or none."""

    def __init__(self) -> None:
        self.told: LinkStatus | None = LinkStatus("up", 0.0, None, (UP,), ())

    def status(self) -> LinkStatus:
        if self.told is None:
            raise JlrError("no link runs")
        return self.told


@pytest.fixture
def link() -> FakeLink:
    return FakeLink()


@pytest.fixture
def seen(link: FakeLink, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> watch.SessionView:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    monkeypatch.setattr(watch.SessionView, "_ask_kernels", lambda *_: None)
    sessions.save(RECORD)
    first = replace(of_forward(RECORD, UP, "token"), kernels=KERNELS)
    return watch.SessionView(cast(Link, link), RECORD, first, lambda: first)


def test_a_clusters_job_is_asked_for_while_it_waits_and_when_it_begins(
    link: FakeLink, seen: watch.SessionView, monkeypatch: pytest.MonkeyPatch
) -> None:
    moment, asked = 0.0, 0
    up = replace(of_forward(RECORD, UP, "token"), job="7", node="node1", time_left=100)
    waits = replace(up, state="queued", url=None, node=None, time_left=None)

    def ask() -> Any:
        nonlocal asked
        asked += 1
        return up if begun else waits

    monkeypatch.setattr("time.monotonic", lambda: moment)
    begun, link.told = False, LinkStatus("up", 0.0, None, (), ())
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
