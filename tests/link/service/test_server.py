"""Commands and a link on both ends of a real socket, without a host, and one conversation."""

from __future__ import annotations

import multiprocessing.connection as sockets
import os
import threading
from collections.abc import Iterator
from multiprocessing import Pipe
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from jlremote.errors import Bug, NeedsAuthentication
from jlremote.jupyter.endpoint import Endpoint
from jlremote.link.client import call
from jlremote.link.client.link import Link, ShellCommand
from jlremote.link.client.remote_process import TerminalKind
from jlremote.link.service import conversation as module
from jlremote.link.service.conversation import CommandStdin, Conversation
from jlremote.link.wire.protocol import (
    DATA,
    PIECES,
    OtherVersion,
    Unproved,
    authenticate_link,
    receive,
    send,
)
from jlremote.place.runtimes.place import Place
from jlremote.questions import Asker, Question
from jlremote.ssh.channels.session_channel import Output
from tests.lab.programs import PATIENCE
from tests.link.fakes import Call, new_endpoint
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
    assert (len(parts.forwards), parts.server.ended) == (0, True)


PASSWORD = Question("password", "password of ada:")
Ends = tuple[Conversation, "sockets.Connection[Any, Any]"]


@pytest.fixture
def ends() -> Iterator[Ends]:
    link, command = Pipe()
    conversation = Conversation(link)
    yield conversation, command
    command.close()
    conversation.end()


def test_a_command_that_ends_before_it_answers_needs_authentication(ends: Ends) -> None:
    conversation, command = ends
    answer = Call(lambda: conversation.ask(PASSWORD))
    receive(command)
    command.close()
    with pytest.raises(NeedsAuthentication, match="ended before it answered"):
        answer.result()


def test_an_answer_that_takes_too_long_is_not_waited_for(
    ends: Ends, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "ANSWER_SECONDS", 0.01)
    with pytest.raises(NeedsAuthentication, match=r"no answer within 0\.01 s") as late:
        ends[0].ask(PASSWORD)
    assert late.value.hint == "run the command again"


def test_the_thread_that_waits_for_the_command_closes_the_socket(ends: Ends) -> None:
    conversation, command = ends
    gone = threading.Event()
    conversation.when_gone(lambda message: gone.set() if message == {"end": True} else None)
    conversation.end()
    conversation.say({"result": True})  # still open
    assert receive(command) == {"result": True}
    command.close()
    assert gone.wait(PATIENCE)
    with pytest.raises(OSError, match="closed"):
        conversation.say({})


def given(data: bytes) -> dict[str, Any]:
    return {"given": True, DATA: data}


@pytest.mark.parametrize("said", [[{"begin": True}], [{"end": True}], [given(b"")], []])
def test_a_script_begins_once_its_command_lets_it_and_never_after_its_end(
    ends: Ends, said: list[dict[str, Any]]
) -> None:
    conversation, command = ends
    begun: list[bool] = []

    def execute(*_: object, cancelled: threading.Event, **__: object) -> None:
        begun.append(not cancelled.is_set())  # see `ShellSession`

    connection: Any = SimpleNamespace(execute=execute)
    script = Call(lambda: module.run(conversation, connection, "true", {}))
    assert "connected" in receive(command)
    for message in said:
        send(command, message)
    if said == []:
        command.close()
    script.result()
    assert begun == [said == [{"begin": True}]]


def test_several_pieces_that_were_taken_are_told_at_once_and_never_all_are_untold() -> None:
    told: list[dict[str, int]] = []
    conversation: Any = SimpleNamespace(say=told.append)
    stdin = CommandStdin(conversation)
    under_way = PIECES
    for number in range(50):
        assert under_way, "the command waits, and all pieces were taken"
        stdin.arrived(given(b"%d" % number))
        assert bytes(stdin.take() or b"") == b"%d" % number
        under_way = PIECES - number - 1 + sum(message["taken"] for message in told)
    assert len(told) <= 50 // 4


def test_what_is_no_piece_is_refused() -> None:
    told: Any = SimpleNamespace()
    with pytest.raises(ValueError, match="not a piece of stdin"):
        CommandStdin(told).arrived({"given": True})
