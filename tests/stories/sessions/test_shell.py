"""A kept shell has a name of its own, and waits aloud where another host answers."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest

from jlremote.errors import HostKeyChanged
from jlremote.hosts import attached_process
from jlremote.link.client.link import Link
from jlremote.link.client.remote_process import RemoteProcess
from jlremote.place.runtimes.place import Place


def test_a_host_with_another_key_is_told_once_and_waited_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def other_host(**_: Any) -> None:
        raise HostKeyChanged("`dgx` has another key")

    shown: list[bytes] = []
    monkeypatch.setattr(attached_process, "_PAUSE_SECONDS", 0.0)
    host = cast(Link, SimpleNamespace(status=other_host))
    screen = cast(Any, SimpleNamespace(show=lambda _, data: shown.append(data)))
    lasting = attached_process.Lasting(host, lambda *_: pytest.fail("no connection"), "hint")
    made = attached_process._Attachment(cast(RemoteProcess, None), screen, lasting)
    for _ in range(2):
        made._attach(lasting)
    assert shown == [b"`dgx` has another key; waiting\r\n"]


@pytest.mark.parametrize(
    ("place", "label", "name"),
    [
        (Place("docker", "a.b"), "", "docker/a+b"),
        (Place("docker", "a_b", session="a_b"), "", "docker/a_b"),
        (Place("sudo podman", "c", session="c"), "two", "sudo-podman/c/two"),
        (Place("none", "host", session="host"), "", "none/host"),
        (Place("none", "dgx"), "two", "host/two"),
    ],
)
def test_each_place_has_a_kept_shell_of_its_own(place: Place, label: str, name: str) -> None:
    assert place.kept(label) == name
