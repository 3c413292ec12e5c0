"""A kept shell has a name of its own, and waits aloud where another host answers."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest

from jlremote.errors import HostKeyChanged
from jlremote.hosts import attached_process
from jlremote.link.client.link import Link, SshPlace
from jlremote.link.client.remote_process import RemoteProcess


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
        (SshPlace("dgx/a.b", None, "docker", "a.b"), "", "docker/a+b"),
        (SshPlace("dgx/a_b", "a_b", "docker", "a_b"), "", "docker/a_b"),
        (SshPlace("d/c", "c", "sudo podman", "c"), "two", "sudo-podman/c/two"),
        (SshPlace("dgx/host", "host", "none", "host"), "", "none/host"),
        (SshPlace("dgx", None, "none", "dgx"), "two", "host/two"),
    ],
)
def test_each_place_has_a_kept_shell_of_its_own(place: SshPlace, label: str, name: str) -> None:
    assert place.kept(label) == name
