"""The streams of an `ssh` in the link's hands: what is read, what is written, and when it ends."""

from __future__ import annotations

import fcntl
import os
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from jlremote.errors import JlrError, LinkLost
from jlremote.link.ssh_server import passed_streams
from jlremote.link.ssh_server.passed_streams import PassedStreams
from tests.link.fakes import until

MARKER = "jlr-c0ffee"
BEGIN = f"{MARKER}\n".encode()
FULL = 8 << 20  # more than any pipe holds, and what may wait for the host


class Passed:
    """Streams that were passed, and the other ends of their pipes."""

    def __init__(self, stdout: int | None = None) -> None:
        self.stdin_there, self.stdin = os.pipe()
        self.stdout, out = os.pipe()
        self.stderr, err = os.pipe()
        self.theirs = [self.stdin_there, out, err]
        own = passed_streams.opened_anew((self.stdin_there, out if stdout is None else stdout, err))
        assert own is not None
        self.streams = PassedStreams(own, MARKER)
        for one in self.theirs:
            os.close(one)

    def taken(self, size: int) -> bytes:
        """Take input until there are `size` bytes of it."""
        came = bytearray()

        def has_come() -> bool:
            came.extend(self.streams.stdin.take() or b"")
            return len(came) >= size

        until(has_come, "the input")
        return bytes(came)

    def close(self) -> None:
        self.streams.close()
        for one in (self.stdin, self.stdout, self.stderr):
            os.close(one)


@pytest.fixture
def passed() -> Iterator[Passed]:
    streams = Passed()
    yield streams
    streams.close()


def in_thread(action: Callable[[], Any]) -> tuple[threading.Thread, list[BaseException]]:
    """Run an action that waits; return its thread, and what it raises."""
    raised: list[BaseException] = []

    def run() -> None:
        try:
            action()
        except JlrError as error:
            raised.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    return thread, raised


def test_no_more_input_is_read_than_the_host_takes(passed: Passed) -> None:
    passed.streams.output("stdout", BEGIN)
    written = 0

    def write() -> None:
        nonlocal written
        while written < FULL:
            written += os.write(passed.stdin, b"x" * (64 << 10))

    writing, _ = in_thread(write)
    until(lambda: passed.streams.stdin.waiting >= 4 << 20, "the limit")
    assert written < FULL, "more was read than may wait"
    assert len(passed.taken(FULL)) == FULL
    writing.join()


def test_what_waits_for_a_reader_ends_with_the_command(passed: Passed) -> None:
    passed.streams.output("stdout", BEGIN)
    writing, raised = in_thread(lambda: passed.streams.output("stdout", b"x" * FULL))
    assert os.read(passed.stdout, 1) == b"x"
    assert writing.is_alive()
    passed.streams.stop()
    writing.join(20)
    assert [type(error) for error in raised] == [LinkLost]


def test_a_full_disk_is_told() -> None:
    with Path("/dev/full").open("wb") as full:
        passed = Passed(full.fileno())
    with pytest.raises(JlrError, match="cannot write the output: no space left on device"):
        passed.streams.output("stdout", BEGIN + b"x")
    passed.close()


def test_a_pipe_of_others_does_not_change() -> None:
    there, here = os.pipe()
    before = fcntl.fcntl(here, fcntl.F_GETFL)
    own = passed_streams.opened_anew((there, here, here))
    assert own is not None
    assert not any(map(os.get_blocking, own))
    assert fcntl.fcntl(here, fcntl.F_GETFL) == before
    passed_streams.close_all(own)
    assert passed_streams.opened_anew((there, here, 1 << 30)) is None, "there is no such descriptor"
    os.close(there)
    os.close(here)


def test_a_terminal_is_read_by_the_client_itself() -> None:
    main, terminal = os.openpty()
    assert passed_streams.opened_anew((terminal, main, main)) is None
    null = os.open(os.devnull, os.O_RDWR)
    own = passed_streams.opened_anew((null, terminal, terminal))
    assert own is not None
    passed_streams.close_all(own)
    for one in (main, terminal, null):
        os.close(one)
