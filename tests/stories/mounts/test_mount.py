"""The folder that is mounted, the states of mounts, and what is refused."""

from __future__ import annotations

from typing import Any

import pytest

from jlremote.errors import Busy, Usage
from jlremote.link.wire.states import LinkStatus, MountStatus, State
from jlremote.mounts import known_mounts, mount
from jlremote.mounts.system import Linux
from tests.stories.parts import RECORD, FakeHost


class FakeSystem(Linux):
    """A system with this mount."""

    def mounted(self) -> list[str]:
        return [RECORD.local]


def link(state: str = State.UP, **mounted: Any) -> LinkStatus:
    mounts = (MountStatus(**{"name": RECORD.name, **mounted}),) if mounted else ()
    return LinkStatus(state, 0.0, "why", (), mounts)


@pytest.mark.parametrize(
    ("status", "state", "detail"),
    [
        (None, State.DOWN, "there is no link to lab"),
        (link(), State.DOWN, "the link does not know it"),
        (link(connected=False, failure="no SFTP"), State.DOWN, "the host refuses it: no SFTP"),
        (link(State.RECONNECTING), State.RECONNECTING, "why"),
    ],
)
def test_a_mount_is_down_without_a_link_that_serves_it(
    status: LinkStatus | None, state: str, detail: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(known_mounts, "is_served", lambda _: True)
    told, why = known_mounts._state(RECORD, FakeSystem(), status)
    assert (told, (why or "")[: len(detail)]) == (state, detail)


def test_a_busy_mount_names_at_most_five_programs() -> None:
    users = ["vim (process 7) works in it"] * 7
    error = known_mounts._refusal(RECORD, "fusermount3: Device or resource busy", users)
    assert isinstance(error, Busy)
    assert (error.message.count("vim"), error.message[-11:]) == (5, " and 2 more")
    assert "a program of another user uses it" in known_mounts._refusal(RECORD, "busy", []).message


@pytest.mark.parametrize("told", ["-oallow_other", "project", "", "/a\n-x", "/a\x1b[2J"])
def test_what_a_host_prints_is_mounted_only_if_it_is_an_absolute_path(told: str) -> None:
    host: Any = FakeHost("lab", {"script": f"writable\n{told}\n"})
    with pytest.raises(Usage, match="no absolute path"):
        mount.look(host, "~/project")
