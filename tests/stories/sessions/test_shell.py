"""`jlr shell` passes keys on, and explains a shell that cannot start or was lost."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import AbstractContextManager, nullcontext
from typing import Any, cast

import pytest

from jlremote.errors import NotFound
from jlremote.hosts import attached_process
from jlremote.link.client.link import Link
from jlremote.link.client.remote_process import RemoteProcess
from jlremote.place.host.contract import Completed
from jlremote.place.runtimes.bare import Bare
from jlremote.place.runtimes.engine.kinds import DOCKER, ENGINES
from jlremote.place.runtimes.engine_containers import Containers
from jlremote.place.runtimes.place import Place
from jlremote.place.runtimes.runtime import Runtime
from jlremote.place.runtimes.scripts import shell_scripts
from jlremote.sessions import shell
from tests.stories.parts import FakeHost, context

SIZE = os.terminal_size((80, 24))


class FakeScreen:
    """A screen with prepared events."""

    kind = "xterm"
    size = SIZE

    def __init__(self, *events: bytes | os.terminal_size) -> None:
        self.events = events

    def taken(self) -> AbstractContextManager[None]:
        return nullcontext()

    def typed(self) -> Iterator[bytes | os.terminal_size]:
        yield from self.events

    def show(self, stream: str, data: bytes) -> None:
        """Show nothing."""

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


def test_keys_and_sizes_are_passed_on() -> None:
    process, screen = FakeProcess(), FakeScreen(b"l", b"s", SIZE, b"")
    attached_process._Attachment(cast(RemoteProcess, process), screen, None)._type()
    assert process.got == [b"l", b"s", SIZE, b""]


def test_a_shell_is_kept_only_by_tmux(monkeypatch: pytest.MonkeyPatch) -> None:
    missing = Completed(shell_scripts.NO_TMUX, "", "")
    host = cast(Link, FakeHost("dgx", {"script": missing, "shown": missing}))
    place = Place("none", "dgx", selector="dgx")
    request = shell.ShellRequest("dgx", keep=True)
    with pytest.raises(NotFound, match="`dgx` has no tmux") as caught:
        shell._kept(host, place, request, FakeScreen(), context())
    assert "`jlr shell dgx` opens one that ends with the connection" in (caught.value.hint or "")
    monkeypatch.setattr(shell, "_run", lambda *_, **__: 3)
    by_setting = shell.ShellRequest("dgx")
    assert shell._kept(host, place, by_setting, FakeScreen(), context()) == 3


@pytest.mark.parametrize(
    ("runtime", "name", "label", "session"),
    [
        (Containers(DOCKER), "a.b", "", "docker/a+b"),
        (Containers(DOCKER), "a_b", "", "docker/a_b"),
        (Containers(ENGINES["sudo podman"]), "cont1", "two", "sudo-podman/cont1/two"),
        (Bare(), "host", "", "none/host"),
        (Bare(), None, "two", "host/two"),
    ],
)
def test_each_place_has_a_kept_shell_of_its_own(
    runtime: Runtime, name: str | None, label: str, session: str
) -> None:
    assert shell_scripts.session(runtime, name, label) == session
