"""Trees with our own SFTP server, which takes many files at once, and with OpenSSH's."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import cast

import pytest

from jlremote.errors import JlrError
from jlremote.link.client.remote_process import RemoteProcess
from jlremote.runtimes.scripts import sftp_program
from jlremote.workflow.copies.sftp_client import SftpClient, SmallFile
from jlremote.workflow.copies.small_files import SMALL
from jlremote.workflow.copies.trees import TreeCopy, fetch_tree, send_tree
from tests.copies.test_cp import same

OURS = (sys.executable, "-I", "-S", str(sftp_program.__file__))
OPENSSH = ("/usr/lib/openssh/sftp-server",)


class LocalServer:
    """A server on this machine, as `SftpClient` uses a process over the link."""

    def __init__(self, argv: tuple[str, ...]) -> None:
        pipe = subprocess.PIPE
        self.process = subprocess.Popen(argv, stdin=pipe, stdout=pipe, bufsize=0)
        self.is_read = threading.Event()

    def give(self, data: bytes) -> bool:
        assert self.process.stdin is not None
        rest = memoryview(data)
        while rest:
            rest = rest[self.process.stdin.write(rest) :]
        return True

    def send(self, data: bytes) -> None:
        assert not data
        assert self.process.stdin is not None
        self.process.stdin.close()

    def leave(self) -> None:
        self.is_read.set()

    def __iter__(self) -> Iterator[tuple[str, bytes]]:
        assert self.process.stdout is not None
        while data := self.process.stdout.read(1 << 16):
            yield "stdout", data


@contextmanager
def serving(argv: tuple[str, ...]) -> Iterator[SftpClient]:
    server = LocalServer(argv)
    with server.process:
        client = SftpClient(cast("RemoteProcess", server))
        client.greet()
        yield client
        client.end()
        assert server.is_read.wait(60)


@pytest.fixture(params=[OURS, OPENSSH], ids=["ours", "openssh"])
def copied(request: pytest.FixtureRequest) -> Iterator[TreeCopy]:
    if not Path(request.param[0]).exists():
        pytest.skip(f"`{request.param[0]}` is not installed")
    with serving(request.param) as client:
        assert client.takes_many == (request.param == OURS)
        yield TreeCopy(lambda *_: None, lambda _: None, lambda _: None, lambda _: None, client)


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """More small files than a request has, files about as large as one, and odd names."""
    top = tmp_path_factory.mktemp("trees") / "tree"
    (top / "many").mkdir(parents=True)
    for number in range(250):
        (top / "many" / str(number)).write_text(str(number), encoding="utf-8")
    (top / "many" / "9").chmod(0o750)
    os.utime(top / "many" / "9", (1e9, 1e9))
    for number, size in enumerate((0, 1, SMALL - 1, SMALL, SMALL + 1, 3 * SMALL)):
        (top / f"{number}").write_bytes(os.urandom(size))
    for name in ("-n", "é\n$(id)", "漢" * 85, os.fsdecode(b"\xff")):
        (top / name).write_text(name, encoding="utf-8", errors="surrogateescape")
    (top / "link").symlink_to("many/9")
    (top / "many").chmod(0o555)
    return top


def test_trees_are_the_same_there_and_back(copied: TreeCopy, tree: Path, tmp_path: Path) -> None:
    send_tree(copied, tree, str(tmp_path / "sent"))
    same(tree, tmp_path / "sent")
    fetch_tree(copied, str(tree), tmp_path / "got")
    same(tree, tmp_path / "got")
    assert not list(tmp_path.rglob("*jlr-part"))


def test_small_files_replace_links_and_never_go_through_them(
    copied: TreeCopy, tmp_path: Path
) -> None:
    for name in ("source", "sent", "got"):
        (tmp_path / name).mkdir()
    (tmp_path / "precious").write_text("mine", encoding="utf-8")
    (tmp_path / "source" / "one").write_text("new", encoding="utf-8")
    for name in ("sent", "got"):
        (tmp_path / name / "one").symlink_to(tmp_path / "precious")
    send_tree(copied, tmp_path / "source", str(tmp_path / "sent"))
    fetch_tree(copied, str(tmp_path / "source"), tmp_path / "got")
    assert (tmp_path / "precious").read_text(encoding="utf-8") == "mine"
    same(tmp_path / "source", tmp_path / "sent")
    same(tmp_path / "source", tmp_path / "got")


def test_a_small_file_that_cannot_be_written_is_named(copied: TreeCopy, tmp_path: Path) -> None:
    for name in ("source", "sent", "got"):
        (tmp_path / name).mkdir()
    (tmp_path / "source" / "one").touch()
    for name in ("sent", "got"):
        (tmp_path / name / "one" / "below").mkdir(parents=True)
    with pytest.raises(
        JlrError, match="one: Is a directory" if copied.client.takes_many else "Failure"
    ):
        send_tree(copied, tmp_path / "source", str(tmp_path / "sent"))
    with pytest.raises(OSError, match="one"):
        fetch_tree(copied, str(tmp_path / "source"), tmp_path / "got")
    shutil.rmtree(tmp_path / "sent" / "one")
    if copied.client.takes_many:
        assert list((tmp_path / "sent").iterdir()) == []


def test_our_server_refuses_names_that_lead_elsewhere(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "secret").write_text("mine", encoding="utf-8")
    (tmp_path / "in" / "link").symlink_to(tmp_path / "secret")
    (tmp_path / "in" / "longer").write_text("long", encoding="utf-8")
    with serving(OURS) as client:
        with pytest.raises(JlrError, match="error 5"):
            client.put_files(str(tmp_path / "in"), [SmallFile("../out", 0o644, 0, b"x")])
        with pytest.raises(JlrError, match="error 5"):
            client.get_files(str(tmp_path / "in"), [("../secret", 4)])
        with pytest.raises(JlrError, match="link: "):
            client.get_files(str(tmp_path / "in"), [("link", 4)])
        with pytest.raises(JlrError, match="longer changed while it was copied"):
            client.get_files(str(tmp_path / "in"), [("longer", 3)])
    assert not (tmp_path / "out").exists()
