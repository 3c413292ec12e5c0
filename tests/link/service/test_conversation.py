"""A command authenticates, is asked on behalf of the host, and is noticed when it goes."""

from __future__ import annotations

import multiprocessing.connection as sockets
import threading
from collections.abc import Iterator
from multiprocessing import Pipe
from types import SimpleNamespace
from typing import Any

import pytest

from jlremote.errors import NeedsAuthentication
from jlremote.link.service import conversation as module
from jlremote.link.service.conversation import CommandStdin, Conversation
from jlremote.link.wire.protocol import DATA, PIECES, receive, send
from jlremote.questions import Question
from tests.lab.programs import PATIENCE
from tests.link.fakes import Call

PASSWORD = Question("password", "password of ada:")
Ends = tuple[Conversation, "sockets.Connection[Any, Any]"]


@pytest.fixture
def ends() -> Iterator[Ends]:
    """The link's side of a socket, and the command's."""
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
    conversation.when_gone(gone.set, lambda _: None)
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


class Told:
    """A conversation that keeps what is said in it."""

    def __init__(self) -> None:
        self.messages: list[dict[str, int]] = []

    def say(self, message: dict[str, int]) -> None:
        self.messages.append(message)


def test_several_pieces_that_were_taken_are_told_at_once_and_never_all_are_untold() -> None:
    told: Any = Told()
    stdin = CommandStdin(told)
    under_way = PIECES
    for number in range(50):
        assert under_way, "the command waits, and all pieces were taken"
        stdin.arrived(given(b"%d" % number))
        assert bytes(stdin.take() or b"") == b"%d" % number
        under_way = PIECES - number - 1 + sum(message["taken"] for message in told.messages)
    assert len(told.messages) <= 50 // 4


def test_what_is_no_piece_is_refused() -> None:
    told: Any = Told()
    with pytest.raises(ValueError, match="not a piece of stdin"):
        CommandStdin(told).arrived({"given": True})
