"""States of mounts, and where a mount can be, without sshfs and without a host."""

from __future__ import annotations

from typing import Any

import pytest

from jlremote.errors import Busy, JlrError, Usage
from jlremote.link.wire.states import State
from jlremote.link.wire.status import LinkStatus, MountStatus
from jlremote.mounts.points import Holder
from jlremote.workflow.mounts import known_mounts, mount, unmount
from tests.workflow.parts import RECORD, FakeSystem


@pytest.fixture
def served(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(known_mounts, "is_served", lambda record: True)


def link(state: str = State.UP, **mounted: Any) -> LinkStatus:
    mounts = (MountStatus(**{"name": RECORD.name, **mounted}),) if mounted else ()
    return LinkStatus(state, 0.0, "why", (), mounts)


def state(status: LinkStatus | None, system: FakeSystem | None = None) -> tuple[str, str | None]:
    return known_mounts._state(RECORD, system or FakeSystem(), status)


def test_a_mount_that_is_gone_says_how_to_mount_it_again(served: None) -> None:
    told, detail = state(None, FakeSystem([]))
    assert told == "unmounted"
    assert "`jlr mount /home/ada/p` mounts it again" in (detail or "")


def test_a_mount_is_down_without_a_link_or_one_that_knows_it(served: None) -> None:
    assert state(None) == (State.DOWN, "there is no link to lab")
    assert state(link())[0] == State.DOWN
    told, detail = state(link(connected=False, failure="no SFTP"))
    assert (told, detail) == (State.DOWN, "the host refuses it: no SFTP")


def test_a_mount_has_the_state_of_a_link_that_is_not_up(served: None) -> None:
    assert state(link(State.RECONNECTING)) == (State.RECONNECTING, "why")


def test_a_mount_in_a_mount_is_refused() -> None:
    with pytest.raises(Usage, match="it lies in the mount `/home/ada/p`"):
        known_mounts.place("/home/ada/p/sub", FakeSystem())
    assert known_mounts.place("/home/ada/p", FakeSystem()) == "/home/ada/p"


def test_a_report_has_the_record_and_the_state() -> None:
    assert known_mounts.report(RECORD, "dead", "why").to_json() == {
        "local": "/home/ada/p",
        "host": "lab",
        "remote": "/srv/p",
        "session": "cont1",
        "read_only": False,
        "state": "dead",
        "detail": "why",
    }


def request(**given: Any) -> mount.MountRequest:
    return mount.MountRequest(**{"local": RECORD.local, **given})


def test_a_mount_of_others_is_not_touched(served: None) -> None:
    with pytest.raises(Usage, match="another mount is at `/home/ada/p`"):
        mount._stays(request(), RECORD.local, None, FakeSystem())


def test_a_busy_mount_names_at_most_five_programs() -> None:
    users = [Holder(n, "vim", "works in") for n in range(7)]
    error = unmount._refusal(RECORD, "fusermount3: Device or resource busy", users)
    assert isinstance(error, Busy)
    assert error.message.count("vim") == 5
    assert error.message.endswith(", and 2 more")
    assert "--force" in (error.hint or "")


def test_a_mount_that_others_hold_says_so_and_another_fault_is_told_as_it_is() -> None:
    busy = unmount._refusal(RECORD, "busy", [])
    assert "a program of another user uses it" in busy.message
    other = unmount._refusal(RECORD, "not permitted", [])
    assert (type(other), other.message) == (JlrError, "cannot unmount `/home/ada/p`: not permitted")
