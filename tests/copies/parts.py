"""Places that answer as the test says, and what a copy is compared with."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import cast

from jlremote.copies import tar_fetch
from jlremote.copies.exchange import CopyPlace, CopyReport, plain_errors
from jlremote.copies.names import RemotePath
from tests.stories.parts import Notes


def same(one: Path, other: Path) -> None:
    names = [sorted(str(path.relative_to(top)) for path in top.rglob("*")) for top in (one, other)]
    assert [name for name in names[0] if name not in ("out", "pipe")] == names[1]
    for name in names[1]:
        path, twin = one / name, other / name
        if path.is_symlink():
            assert os.readlink(twin) == os.readlink(path)  # noqa: PTH115
            continue
        assert stat.S_IMODE(twin.stat().st_mode) == stat.S_IMODE(path.stat().st_mode), name
        if path.is_file():  # busybox does not keep the times of folders
            assert twin.read_bytes() == path.read_bytes()
            assert int(twin.stat().st_mtime) == int(path.stat().st_mtime), name


class Answering:
    """A place that answers with these bytes, whatever it is asked."""

    def __init__(self, stream: bytes) -> None:
        self.stream = stream

    @contextmanager
    def process(self, argv: tuple[str, ...]) -> Iterator[Answering]:
        self.status: int | None = None
        yield self

    def send(self, data: bytes) -> None: ...

    def give(self, data: bytes) -> bool:
        return True

    def hang_up(self) -> None: ...

    def __iter__(self) -> Iterator[tuple[str, bytes]]:
        yield "stdout", self.stream
        self.status = 0


def fetch(place: Answering, source: RemotePath, into: Path, *, recursive: bool = True) -> None:
    """Copy by tar from a place that answers what it likes."""
    report = CopyReport(Notes())
    with plain_errors():
        tar_fetch.fetch(
            report, cast("CopyPlace", place), [source], into, recursive=recursive, preserve=True
        )
