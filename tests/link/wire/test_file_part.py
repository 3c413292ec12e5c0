"""Parts of files in messages to the link: all bytes, or an error that names the file."""

from __future__ import annotations

import errno
import os
import socket
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO

import pytest

from jlremote.errors import JlrError
from jlremote.link.wire.file_part import FilePart
from jlremote.link.wire.protocol import DATA, receive, send

NOISE = os.urandom(1 << 20)


@pytest.fixture
def noise(tmp_path: Path) -> Iterator[BinaryIO]:
    (tmp_path / "noise").write_bytes(NOISE)
    with (tmp_path / "noise").open("rb") as file:
        yield file


def sent(part: FilePart) -> Any:
    """Return what arrives of a part that is larger than the socket's buffer."""
    ours, theirs = socket.socketpair()
    with ours, theirs:
        messages: list[Any] = []
        reader = threading.Thread(target=lambda: messages.append(receive(theirs)))
        reader.start()
        send(ours, {"given": True, DATA: part})
        reader.join()
        assert messages[0].pop("given") is True
        return messages[0][DATA]


def test_a_part_of_a_file_is_the_bytes_of_a_message(noise: BinaryIO) -> None:
    assert sent(FilePart(noise, "noise", 7, 700_000)) == NOISE[7:700_007]


def test_a_file_system_from_which_the_kernel_sends_nothing_is_read(
    noise: BinaryIO, monkeypatch: pytest.MonkeyPatch
) -> None:
    real, calls = os.sendfile, list[int]()

    def refuse(target: int, source: int, offset: int, size: int) -> int:
        calls.append(size)
        if len(calls) == 2:
            raise OSError(errno.EINVAL, "not from here")
        return real(target, source, offset, 1000)

    monkeypatch.setattr(os, "sendfile", refuse)
    assert sent(FilePart(noise, "noise", 7, 700_000)) == NOISE[7:700_007]
    assert calls == [700_000, 699_000]


def test_a_file_that_became_shorter_is_named(noise: BinaryIO) -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        part = FilePart(noise, "noise", len(NOISE) - 10, 11)
        with pytest.raises(JlrError, match="`noise` became shorter while it was sent"):
            send(ours, {DATA: part})


def test_a_file_that_cannot_be_read_is_named() -> None:
    ours, theirs = socket.socketpair()
    expected = pytest.raises(JlrError, match="cannot read `there`: input/output error")
    with ours, theirs, Path("/proc/self/mem").open("rb") as broken, expected:
        FilePart(broken, "there", 0, 5).send(ours.fileno())


def test_a_reader_that_is_gone_is_told_from_a_file_that_cannot_be_read(noise: BinaryIO) -> None:
    ours, theirs = socket.socketpair()
    theirs.close()
    with ours, pytest.raises(BrokenPipeError):
        FilePart(noise, "noise", 0, 5).send(ours.fileno())
