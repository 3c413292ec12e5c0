"""Places that answer as the test says, and what a copy is compared with."""

from __future__ import annotations

import os
import selectors
import stat
import subprocess
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import cast

from jlremote.copies import tar_fetch, tar_send
from jlremote.copies.exchange import CopyPlace, CopyReport, plain_errors
from jlremote.copies.names import RemotePath
from jlremote.errors import LinkLost
from tests.cli.terminal import Terminal
from tests.lab.laptop import PROGRAMS, Laptop
from tests.stories.parts import Notes


@contextmanager
def on_terminal(owner: Laptop, *words: str) -> Iterator[Terminal]:
    """Run jlr on a terminal."""
    jlr, environment = str(PROGRAMS / "jlr"), owner.environment | {"TERM": "xterm-256color"}
    with closing(Terminal((jlr, *words), environment=environment)) as terminal:
        yield terminal


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


class LocalPlace:
    """A place that is a folder of this machine, with the programs of another one."""

    def __init__(self, home: Path, tools: Path) -> None:
        self.home, self.tools = home, tools
        self.report = CopyReport(Notes())
        self.umask = 0o022

    @contextmanager
    def process(self, argv: tuple[str, ...]) -> Iterator[LocalProcess]:
        environment = {"PATH": str(self.tools), "HOME": str(self.home), "LC_ALL": "C.UTF-8"}
        pipe = subprocess.PIPE
        with subprocess.Popen(
            argv, stdin=pipe, stdout=pipe, stderr=pipe, cwd=self.home, env=environment,
            umask=self.umask, bufsize=0,
        ) as process:  # fmt: skip
            yield LocalProcess(process)

    def send(
        self, *sources: Path, into: str, recursive: bool = True, preserve: bool = True
    ) -> None:
        tar_send.check_sources(sources, recursive=recursive)
        tar_send.send(
            self.report, cast("CopyPlace", self), sources, RemotePath("place", into),
            preserve=preserve,
        )  # fmt: skip

    def fetch(
        self, *sources: str, into: Path, recursive: bool = True, preserve: bool = True
    ) -> None:
        tar_fetch.fetch(
            self.report, cast("CopyPlace", self), [RemotePath("place", one) for one in sources],
            into, recursive=recursive, preserve=preserve,
        )  # fmt: skip


class LocalProcess:
    """A process of this machine, as `RemoteProcess` has one of the host."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self.status: int | None = None
        self._process = process
        self._hung_up = False

    def give(self, data: bytes) -> bool:
        assert self._process.stdin is not None
        with suppress(BrokenPipeError):
            if not data:
                self._process.stdin.close()
            while data:
                data = data[self._process.stdin.write(data) :]
            return True
        return False

    send = give

    def hang_up(self) -> None:
        self._hung_up = True
        self.give(b"")

    def __iter__(self) -> Iterator[tuple[str, bytes]]:
        outputs = selectors.DefaultSelector()
        outputs.register(self._process.stdout, selectors.EVENT_READ, "stdout")  # type: ignore[arg-type]
        outputs.register(self._process.stderr, selectors.EVENT_READ, "stderr")  # type: ignore[arg-type]
        while outputs.get_map():
            for key, _ in outputs.select():
                if data := os.read(key.fd, 1 << 20):
                    yield key.data, data
                else:
                    outputs.unregister(key.fileobj)
        self.status = self._process.wait()
        if self._hung_up:
            raise LinkLost("it was ended")


def fetch(place: Answering, source: RemotePath, into: Path, *, recursive: bool = True) -> None:
    """Copy by tar from a place that answers what it likes."""
    report = CopyReport(Notes())
    with plain_errors():
        tar_fetch.fetch(
            report, cast("CopyPlace", place), [source], into, recursive=recursive, preserve=True
        )
