"""`jlr shell` passes keys on, and explains a shell that cannot start or was lost."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import AbstractContextManager, nullcontext
from typing import Any, cast

import pytest

from jlremote.errors import Authentication, HostKeyChanged, LinkLost
from jlremote.hosts import attached_process
from jlremote.link.client.link import Link, SshPlace
from jlremote.link.client.remote_process import RemoteProcess

SIZE = os.terminal_size((80, 24))


class FakeScreen:
    """A screen with prepared events."""

    kind = "xterm"
    size = SIZE

    def __init__(self, *events: bytes | os.terminal_size) -> None:
        self.events = events
        self.shown = b""

    def taken(self) -> AbstractContextManager[None]:
        return nullcontext()

    def typed(self) -> Iterator[bytes | os.terminal_size]:
        yield from self.events

    def show(self, stream: str, data: bytes) -> None:
        self.shown += data

    def recover(self) -> None:
        """Mend nothing."""


class FakeProcess:
    """A process that takes keys."""

    def __init__(self) -> None:
        self.got: list[Any] = []

    def give(self, data: bytes) -> bool:
        self.got.append(data)
        return True

    def resize(self, size: os.terminal_size) -> None:
        self.got.append(size)


class LostProcess(FakeProcess):
    """A process whose connection is lost at once."""

    status = None

    def __iter__(self) -> Iterator[tuple[str, bytes]]:
        raise LinkLost("the connection broke")

    def leave(self) -> None:
        """End nothing."""


def test_keys_and_sizes_are_passed_on() -> None:
    process, screen = FakeProcess(), FakeScreen(b"l", b"s", SIZE, b"")
    attached_process._Attachment(cast(RemoteProcess, process), screen, None)._type()
    assert process.got == [b"l", b"s", SIZE, b""]


class OtherHost:
    """A link that finds another host by its name, twice, and then none."""

    disconnected = False
    failures = [HostKeyChanged("`dgx` has another key")] * 2

    def status(self, **_: Any) -> None:
        raise self.failures.pop() if self.failures else Authentication("refused")


def test_a_host_with_another_key_is_told_once_and_waited_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(attached_process, "_PAUSE_SECONDS", 0.0)
    screen, host = FakeScreen(), cast(Link, OtherHost())
    lasting = attached_process.Lasting(host, lambda *_: pytest.fail("no connection"), "hint")
    made = attached_process._Attachment(cast(RemoteProcess, LostProcess()), screen, lasting)
    with pytest.raises(Authentication) as caught:
        made.to_the_end()
    assert caught.value.message == "refused; what runs there keeps running"
    assert screen.shown.count(b"`dgx` has another key; waiting") == 1


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
