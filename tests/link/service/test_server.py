"""Commands and a link on both ends of a real socket, without a host."""

from __future__ import annotations

import multiprocessing.connection as sockets
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from jlremote.errors import Bug
from jlremote.jupyter.endpoint import Endpoint
from jlremote.link.client import call
from jlremote.link.client.link import Link, ShellCommand
from jlremote.link.client.remote_process import TerminalKind
from jlremote.link.wire.protocol import OtherVersion, Unproved, authenticate_link, receive, send
from jlremote.place.runtimes.place import Place
from jlremote.questions import Asker
from jlremote.ssh.interfaces import Output
from tests.link.fakes import new_endpoint
from tests.link.service.parts import SECRET, Parts, new_parts, served
from tests.outages.parts import within

SERVER = new_endpoint()
TENSORBOARD = Endpoint(SERVER.place, 6006)


@pytest.fixture
def parts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Parts]:
    made = new_parts(monkeypatch, tmp_path)
    with served(made):
        yield made


@pytest.fixture
def link(parts: Parts) -> Link:
    return parts.link()


def conversation(parts: Parts, **request: Any) -> list[dict[str, Any]]:
    """Return all messages that the link sends on a request, as any version may make it."""
    with sockets.Client(str(parts.files.socket)) as socket:
        authenticate_link(socket, SECRET)
        send(socket, request)
        answers = []
        try:
            while True:
                answers.append(receive(socket))
        except EOFError:
            return answers


TERMINAL = TerminalKind("xterm", os.terminal_size((80, 24)))


def shell(link: Link, *command: str, container: str = "c0ffee", checked: bool = False) -> int:
    place = Place("docker", "cont1", container, selector="dgx/cont1", session="cont1")
    with link.shell(place, ShellCommand(command, user="ada"), None, checked=checked) as process:
        assert list(process) == [("stdout", b"hi\n")]
    assert process.status is not None
    return process.status


def test_a_shell_needs_a_forward_that_knows_the_container(parts: Parts, link: Link) -> None:
    scripts: list[str] = []

    def run(script: bytes, output: Output, options: dict[str, Any]) -> int:
        scripts.append(script.decode())
        marker = scripts[-1].split("'")[3]
        output("stdout", f"{marker}\nhi\n".encode())
        return 5

    parts.supervisor.host.run = run
    with pytest.raises(Unproved):
        shell(link, "true")
    link.forward("cont1", 8888, SERVER)
    with pytest.raises(Unproved):
        shell(link, "true", container="beef")
    assert scripts == []
    assert shell(link, "echo", "two  words") == 5
    assert "docker exec --interactive --user=ada" in scripts[0]
    assert "c0ffee sh -c" in scripts[0]
    assert parts.dialer.elevated[-1] in scripts[0]
    assert shell(link, "true", container="beef", checked=True) == 5


def test_a_shell_gets_the_locale_and_a_copy_whose_words_are_read_here_does_not(
    parts: Parts, link: Link, monkeypatch: pytest.MonkeyPatch
) -> None:
    sent: list[dict[str, str]] = []

    def run(script: bytes, output: Output, options: dict[str, Any]) -> int:
        sent.append(options["variables"])
        return 0

    parts.supervisor.host.run = run
    monkeypatch.setenv("LC_SHOWN", "de")
    place = Place("none", "dgx", selector="dgx")
    for copies in (False, True):
        what = ShellCommand(("true",), copies=copies)
        with link.shell(place, what, TERMINAL, checked=True) as process:
            assert list(process) == []
    assert sent == [{"LC_SHOWN": "de"}, {}]


def test_a_bug_in_the_link_is_told_as_one_and_the_link_goes_on(parts: Parts, link: Link) -> None:
    def fail(asker: Asker) -> None:
        raise ZeroDivisionError("by accident")

    parts.supervisor.connects = fail
    with pytest.raises(Bug, match="by accident"):
        link.mount("data", "/project")
    assert link.status().state == "up"


@within(5)
def test_a_command_of_another_version_is_told_what_to_do_and_costs_no_forward(
    parts: Parts, link: Link, monkeypatch: pytest.MonkeyPatch
) -> None:
    link.forward("cont1", 8888, SERVER)
    with monkeypatch.context() as other:
        other.setattr(call, "__version__", "99.0")
        for look in (link.status, lambda: link.unforward("cont1")):
            with pytest.raises(OtherVersion, match=r"this is jlr 99\.0") as told:
                look()
            assert "`jlr disconnect dgx`" in (told.value.hint or "")
    assert [one.session for one in link.status().forwards] == ["cont1"]


def test_a_command_of_any_age_can_end_the_link_and_has_its_ports(parts: Parts, link: Link) -> None:
    link.forward("cont1", 8888, SERVER)
    ended = conversation(parts, op="shutdown", version="0.0.1")
    assert ended == [{"accepted": True}, {"result": True}]
    assert (len(parts.forwards), parts.server.goes_on) == (0, False)


def test_a_stranger_and_a_mute_caller_block_no_command(parts: Parts, link: Link) -> None:
    with (
        sockets.Client(str(parts.files.socket)),
        sockets.Client(str(parts.files.socket)) as stranger,
    ):
        authenticate_link(stranger, SECRET)
        stranger.send_bytes(b"no request")
        assert link.status().state == "up"
