"""A request reaches the link that runs, or the next one; its script has its bytes or text."""

from __future__ import annotations

import itertools
import multiprocessing.connection as sockets
import os
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jlremote.errors import Bug, JlrError, LinkLost, Unreachable
from jlremote.link.client import call
from jlremote.link.client.call import Caller, LinkStuck, NoLink
from jlremote.link.client.remote_process import RemoteProcess
from jlremote.link.wire.link_files import LinkFiles
from jlremote.link.wire.protocol import (
    PIECES,
    NotProved,
    authenticate_command,
    is_there,
    receive,
    send,
)
from jlremote.questions import NeverAsks
from tests.lab.programs import PATIENCE
from tests.link.fakes import Call, own_folders

SECRET = b"of this test"
Socket = sockets.Connection
Answer = Callable[["Socket[Any, Any]", dict[str, Any]], None]


class FakeLink:
    """A listener that answers each request as the test says."""

    def __init__(self, files: LinkFiles) -> None:
        self.files = files
        self.requests: list[dict[str, Any]] = []
        self.answers: list[Answer] = []
        files.key.write_bytes(SECRET)
        self._listener = sockets.Listener(str(files.socket))
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    def _serve(self) -> None:
        with suppress(OSError):
            while True:
                with suppress(EOFError, NotProved), self._listener.accept() as socket:
                    authenticate_command(socket, SECRET)
                    self.requests.append(receive(socket))
                    self.answers.pop(0)(socket, self.requests[-1])

    def stop(self) -> None:
        with suppress(OSError), sockets.Client(str(self.files.socket)):
            self._listener.close()


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> LinkFiles:
    own_folders(monkeypatch, tmp_path)
    return LinkFiles("dgx", None)


@pytest.fixture
def link(files: LinkFiles) -> Iterator[FakeLink]:
    made = FakeLink(files)
    yield made
    made.stop()


@pytest.fixture
def caller(files: LinkFiles) -> Caller:
    return Caller(files, NeverAsks(""), "/tmp/agent", lambda: None)


def result(value: Any) -> Answer:
    def answer(socket: Socket[Any, Any], request: dict[str, Any]) -> None:
        send(socket, {"accepted": True})
        send(socket, {"result": value})

    return answer


def leave(socket: Socket[Any, Any], request: dict[str, Any]) -> None:
    """Hang up before the request is accepted."""


def break_off(socket: Socket[Any, Any], request: dict[str, Any]) -> None:
    """Hang up after the request is accepted."""
    send(socket, {"accepted": True})


def test_a_request_that_was_not_accepted_is_sent_again(link: FakeLink, caller: Caller) -> None:
    link.answers = [leave, leave, result("here")]
    assert caller.ask("status") == "here"
    assert len(link.requests) == 3


def test_a_link_that_never_accepts_is_a_bug_with_its_log(link: FakeLink, caller: Caller) -> None:
    link.answers = [leave] * call.TRIES
    with pytest.raises(Bug, match="ends as soon as it is used") as bug:
        caller.ask("status")
    assert str(link.files.log) in (bug.value.hint or "")


def test_background_work_begins_no_link_that_was_ended_on_purpose(files: LinkFiles) -> None:
    files.disconnected.touch()
    with pytest.raises(Unreachable, match="`jlr disconnect`"):
        Caller(files, NeverAsks("", obeys=True), None, lambda: None).ask("status")


def test_a_request_that_was_accepted_is_not_sent_again(link: FakeLink, caller: Caller) -> None:
    link.answers = [break_off]
    with pytest.raises(LinkLost, match="ended before it answered"):
        caller.ask("forward")
    assert len(link.requests) == 1


@pytest.mark.parametrize(("begun", "answers"), [(True, True), (True, False), (False, False)])
def test_ctrl_c_ends_the_script_or_never_lets_it_begin(
    begun: bool, answers: bool, link: FakeLink, caller: Caller, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(call, "END_SECONDS", PATIENCE if answers else 0.01)
    heard: list[dict[str, Any]] = []

    def run(socket: Socket[Any, Any], request: dict[str, Any]) -> None:
        for message in ({"accepted": True}, {"connected": True}):
            send(socket, message)
        while {"end": True} not in heard:
            heard.append(receive(socket))
        if answers:
            send(socket, {"result": 130})
        receive(socket)  # until it hangs up

    link.answers = [run]
    with pytest.raises(KeyboardInterrupt) as interrupted:
        run_until_interrupted(caller, begun=begun)
    link.stop()
    link._thread.join(PATIENCE)
    assert heard == ([{"begin": True}, {"end": True}] if begun else [])
    assert bool(interrupted.value.args) is (begun and not answers)


def run_until_interrupted(caller: Caller, *, begun: bool) -> None:
    """Run a script, and press Ctrl-C once it has begun, or before the command knows of that."""
    with caller.call("run") as running:
        if begun:
            assert "connected" in next(running.messages())
        else:
            assert is_there(running._socket, PATIENCE)
        raise KeyboardInterrupt


def test_a_new_link_restores_before_it_is_asked(files: LinkFiles, link: FakeLink) -> None:
    files.restoring.touch()
    order: list[str] = []
    caller = Caller(files, NeverAsks(""), None, lambda: order.append("restored"))
    link.answers = [leave, result("connected"), result("answered")]
    assert caller.ask("status") == "answered"
    assert order == ["restored"]
    assert not files.restoring.exists()


def test_a_command_that_starts_no_link_restores_nothing(files: LinkFiles, link: FakeLink) -> None:
    files.restoring.touch()
    caller = Caller(files, NeverAsks(""), None, lambda: pytest.fail("it restored"))
    link.answers = [result("answered")]
    assert caller.ask("status", start=False) == "answered"
    assert files.restoring.exists()


@pytest.mark.lab  # it takes seconds
@pytest.mark.parametrize("accepts", [True, False])
def test_a_link_that_falls_silent_in_a_conversation_is_told_with_its_process(
    accepts: bool, link: FakeLink, caller: Caller, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert call.SILENCE_SECONDS + call.ANSWER_SECONDS <= 15
    monkeypatch.setattr(call, "ANSWER_SECONDS", 0.2)
    monkeypatch.setattr(call, "SILENCE_SECONDS", 0.01)
    given_up = threading.Event()

    def fall_silent(socket: Socket[Any, Any], request: dict[str, Any]) -> None:
        if accepts:
            send(socket, {"accepted": True})
        assert given_up.wait(PATIENCE)

    link.answers = [fall_silent]
    try:
        with pytest.raises(LinkStuck, match=rf"its process is {os.getpid()}$") as stuck:
            caller.ask("status")
    finally:
        given_up.set()
    assert f"kill -CONT {os.getpid()}" in (stuck.value.hint or "")


def test_a_link_with_another_secret_counts_as_ending(link: FakeLink) -> None:
    link.files.key.write_bytes(b"of an older link")
    with pytest.raises(NoLink, match="is ending"):
        call.dial(link.files)


MARKER = "jlr-c0ffee"
BEGIN = {"stream": "stdout", "data": f"{MARKER}\n".encode()}
Message = dict[str, Any]


def printed(data: bytes, stream: str = "stdout") -> Message:
    return {"stream": stream, "data": data}


def pieces(said: list[Message]) -> list[bytes]:
    return [message["data"] for message in said if "given" in message]


def process(*messages: Message, marker: str | None = MARKER) -> tuple[RemoteProcess, list[Message]]:
    said: list[Message] = []
    return RemoteProcess(iter(messages), marker, said.append), said


def test_a_shell_that_ends_before_the_script_is_an_error_with_its_last_words() -> None:
    told, _ = process(printed(b"This account is locked.\n"), {"result": 1})
    with pytest.raises(JlrError, match="This account is locked"):
        list(told)
    assert told.status is None


def test_stdin_waits_until_the_script_reads_it() -> None:
    waiting: list[Call[bool]] = []

    def messages() -> Iterator[Message]:
        yield BEGIN
        assert waiting[0].result()
        assert all(remote.give(b"more") for _ in range(PIECES - 1))
        waiting.append(Call(lambda: remote.give(b"too many")))
        assert waiting[1].running
        yield {"taken": 1}
        assert waiting[1].result()
        yield {"result": 0}

    said: list[Message] = []
    remote = RemoteProcess(messages(), MARKER, said.append)
    waiting.append(Call(lambda: remote.give(b"one")))
    assert waiting[0].running
    assert list(remote) == []
    assert pieces(said) == [b"one", *[b"more"] * (PIECES - 1), b"too many"]


def test_a_thread_that_waits_to_give_is_released_when_the_process_is_left() -> None:
    remote, said = process()
    giving = Call(lambda: remote.give(b"too late"))
    assert giving.running
    remote.leave()
    assert not giving.result()
    assert said == []


@given(st.text(st.characters(codec="utf-8")), st.lists(st.integers(0, 400), max_size=6))
def test_text_comes_whole_however_its_bytes_are_cut(text: str, cuts: list[int]) -> None:
    data = f"noise\n{MARKER}\n{text}".encode()
    edges = [0, *sorted(cut for cut in cuts if cut < len(data)), len(data)]
    parts = [printed(data[a:b]) for a, b in itertools.pairwise(edges)]
    output, _ = process(*parts, {"result": 0})
    assert "".join(output.text()) == text
    assert output.status == 0
