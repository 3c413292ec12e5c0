"""`jlr shell` passes keys on, and explains a shell that cannot start or was lost."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import AbstractContextManager, nullcontext
from typing import Any, cast

import pytest

from jlremote.errors import NotFound
from jlremote.hosts import attached_process
from jlremote.laptop.sessions import SessionRecord
from jlremote.link.client.link import Link
from jlremote.link.client.remote_process import RemoteProcess
from jlremote.place.host.contract import Completed
from jlremote.place.runtimes.bare import Bare
from jlremote.place.runtimes.engine.kinds import DOCKER, ENGINES
from jlremote.place.runtimes.engine_containers import Containers
from jlremote.place.runtimes.runtime import Runtime
from jlremote.place.runtimes.scripts import shell_scripts
from jlremote.sessions import shell
from tests.stories.parts import FakeHost, context

RECORD = SessionRecord("dgx", "cont1", "docker", 8901, image="torch")
SIZE = os.terminal_size((80, 24))


class FakeScreen:
    """A screen with prepared events; the last one may be an error."""

    kind = "xterm"
    size = SIZE

    def __init__(self, *events: bytes | os.terminal_size | Exception) -> None:
        self.events = events
        self.shown: list[tuple[str, bytes]] = []

    def taken(self) -> AbstractContextManager[None]:
        return nullcontext()

    def typed(self) -> Iterator[bytes | os.terminal_size]:
        for event in self.events:
            if isinstance(event, Exception):
                raise event
            yield event

    def show(self, stream: str, data: bytes) -> None:
        self.shown.append((stream, data))

    def recover(self) -> None:
        """Mend nothing."""


class FakeProcess:
    """A process that takes some keys and then ends."""

    def __init__(self, takes: int) -> None:
        self.takes = takes
        self.got: list[Any] = []

    def give(self, data: bytes) -> bool:
        self.got.append(data)
        return len(self.got) < self.takes

    def resize(self, size: os.terminal_size) -> None:
        self.got.append(size)

    def hang_up(self) -> None:
        self.got.append("hung up")


def typing(screen: FakeScreen, *, takes: int = 9) -> tuple[attached_process._Typing, list[Any]]:
    process = FakeProcess(takes)
    thread = attached_process._Typing(cast(RemoteProcess, process), screen)
    thread.run()
    return thread, process.got


def test_keys_and_sizes_are_passed_on() -> None:
    thread, got = typing(FakeScreen(b"l", b"s", SIZE, b""))
    assert got == [b"l", b"s", SIZE, b""]
    assert not thread.hung_up


def test_keys_after_the_end_of_the_process_are_not_passed_on() -> None:
    _, got = typing(FakeScreen(b"a", b"b", b"c"), takes=2)
    assert got == [b"a", b"b"]


def check_runs(container: Completed) -> None:
    host = FakeHost("dgx", {"container": container, "inside": Completed(1, "", "")})
    shell._check_runs(cast(Link, host), Containers(DOCKER), RECORD, as_shared=False)


def inspected(*, running: bool) -> Completed:
    state = {"Running": running, "StartedAt": ""}
    return Completed(
        0,
        json.dumps(
            [
                {
                    "Id": "c0ffee",
                    "Name": "/cont1",
                    "State": state,
                    "Config": {},
                    "HostConfig": {},
                    "NetworkSettings": {},
                }
            ]
        ),
        "",
    )


def test_a_container_that_runs_is_accepted() -> None:
    check_runs(inspected(running=True))
    with pytest.raises(NotFound, match="the container `cont1` does not run") as stopped:
        check_runs(inspected(running=False))
    assert stopped.value.hint == "`jlr start dgx cont1` starts it again"


def test_a_container_that_is_gone_is_created_by_the_hint() -> None:
    with pytest.raises(NotFound, match="the container `cont1` is gone") as caught:
        check_runs(Completed(1, "[]", "Error: No such container: cont1"))
    assert caught.value.hint == "`jlr start dgx cont1 --image torch` starts it again"


def test_a_shell_is_kept_only_by_tmux() -> None:
    host = cast(Link, FakeHost("dgx", {"script": Completed(shell_scripts.NO_TMUX, "", "")}))
    place = shell.ShellPlace(host, Bare(), "dgx", "dgx", is_host=True)
    request = shell.ShellRequest("dgx", keep="")
    with pytest.raises(NotFound, match="`dgx` has no tmux") as caught:
        shell._kept(place, request, "", FakeScreen(), context())
    assert "`jlr shell dgx` opens one that ends with the connection" in (caught.value.hint or "")


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
