"""`jlr open` waits for a forward that is up, and says how to start a session that is not."""

from __future__ import annotations

from dataclasses import replace
from typing import cast

import pytest

from jlremote.errors import NotFound
from jlremote.forwards import local_ports
from jlremote.hosts.halted import again
from jlremote.laptop.sessions import SessionRecord
from jlremote.link.client.link import Link
from jlremote.link.wire.status import ForwardStatus, LinkStatus
from jlremote.sessions.open import live_forward
from tests.link.fakes import new_endpoint

RECORD = SessionRecord("dgx", "cont1", "docker", 8901, image="torch")
UP = ForwardStatus("cont1", None, 8901, "up", 0.0, None, new_endpoint(), None)


class FakeLink:
    """A link with one forward, and another one once that was checked."""

    def __init__(self, held: ForwardStatus | None, checked: ForwardStatus | None = None) -> None:
        self.held = held
        self.checked = checked

    def status(self, *, connect: bool = False) -> LinkStatus:
        return LinkStatus("up", 0.0, None, (self.held,) if self.held else (), ())

    def check(self, session: str) -> ForwardStatus | None:
        return self.checked


def live(link: FakeLink, record: SessionRecord = RECORD) -> ForwardStatus:
    return live_forward(cast(Link, link), record)


def test_a_forward_that_is_up_is_used_without_a_check() -> None:
    assert live(FakeLink(UP)) is UP


def test_a_forward_that_the_link_has_lost_is_restored(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(local_ports, "bring_back", lambda *_: UP)
    assert live(FakeLink(None)) is UP


def test_a_stopped_session_is_not_restored() -> None:
    with pytest.raises(NotFound, match="`dgx/cont1` does not run"):
        live(FakeLink(None), replace(RECORD, forwarded=False, runtime="none"))


@pytest.mark.parametrize(
    ("record", "gone", "command"),
    [
        (RECORD, False, "jlr start dgx cont1"),
        (RECORD, True, "jlr start dgx cont1 --image torch"),
        (replace(RECORD, image=None), True, "jlr start dgx cont1"),
        (replace(RECORD, runtime="none", image=None), False, "jlr start dgx cont1 --runtime none"),
        (replace(RECORD, runtime="slurm", image=None), False, "jlr restart dgx/cont1"),
        (replace(RECORD, runtime="slurm apptainer"), True, "jlr restart dgx/cont1"),
    ],
)
def test_the_hint_starts_a_session_as_it_was(
    record: SessionRecord, gone: bool, command: str
) -> None:
    assert again(record, "container-gone" if gone else "down") == f"`{command}` starts it again"
