"""A command's stdin arrives at its script byte for byte, and never piles up."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator

import psutil
import pytest

from jlremote.errors import JlrError
from tests.link.desk import Desk

MEGABYTE = 1 << 20


def text(desk: Desk, script: str, given: list[bytes] | Iterator[bytes], *, end: bool) -> str:
    with desk.link().stream(script, given, end=end) as output:
        return "".join(output)


def test_the_shell_never_runs_stdin_as_its_script(desk: Desk) -> None:
    """dash reads its script by blocks, and what lies behind it would be swallowed."""
    given = [b"echo injected\n", b"exit 3\n"]
    read = 'IFS= read -r first; echo "[$first]"; cat'
    assert text(desk, read, given, end=True) == "[echo injected]\nexit 3\n"


def test_stdin_stays_open_after_the_pieces_unless_its_end_is_wanted(desk: Desk) -> None:
    script = "read -r word; echo $word; read -r more; echo hung up"
    with desk.link().stream(script, [b"one\n"]) as output:
        parts = iter(output)
        assert next(parts) == "one\n"
    assert text(desk, script, [b"one\n"], end=True) == "one\nhung up\n"


def test_stdin_that_a_script_leaves_unread_is_not_run(desk: Desk) -> None:
    pieces = [b"echo injected\n", b"exit 3\n"]
    with desk.link().stream("echo mine", pieces) as output:
        assert "".join(output) == "mine\n"
        assert output.status == 0


def test_an_error_while_making_a_piece_ends_the_script(desk: Desk) -> None:
    def pieces() -> Iterator[bytes]:
        yield b"begun\n"
        raise JlrError("the file changed")

    with pytest.raises(JlrError, match="the file changed"):
        text(desk, "cat", pieces(), end=True)


def test_eighty_megabytes_pass_without_piling_up(desk: Desk) -> None:
    """The host is slower than the command: memory of neither process may grow with what waits."""
    desk.run("true")
    link, command = desk.process(), psutil.Process()
    before = link.memory_info().rss, command.memory_info().rss
    peaks = [0, 0]
    block = os.urandom(MEGABYTE // 4)

    def pieces() -> Iterator[bytes]:
        for _ in range(320):
            yield block
            peaks[:] = map(max, peaks, (link.memory_info().rss, command.memory_info().rss))

    expected = hashlib.sha256(block * 320).hexdigest()
    assert text(desk, "sleep 1; sha256sum", pieces(), end=True) == f"{expected}  -\n"
    grown = [peak - start for peak, start in zip(peaks, before, strict=True)]
    assert max(grown) < 40 * MEGABYTE, grown
