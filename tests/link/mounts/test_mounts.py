"""sshfs hands its socket to the link, and gets an SFTP server or an error in time."""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import pytest

from jlremote.errors import JlrError, LinkLost
from jlremote.link import mount_streams as module
from jlremote.link.connection.supervisor import Supervisor
from jlremote.link.mount_streams import Mounts
from jlremote.mounts.connector import WELCOME
from jlremote.ssh.connection import Connection
from tests.lab.programs import PATIENCE
from tests.link.fakes import FakeConnection, until


@dataclass(eq=False)
class FakeStream:
    """An SFTP stream that serves until it is aborted."""

    connection: Connection
    local: Any
    root: str
    loop: Any
    ended: Callable[[str | None], None]

    def abort(self) -> None:
        self.end(None)

    def end(self, reason: str | None) -> None:
        if self.local.fileno() != -1:
            self.local.close()
            self.ended(reason)


class Parts:
    def __init__(self, folder: Path) -> None:
        self.address = folder / "mounts.sftp"
        self.connection = FakeConnection()
        self.away: JlrError | None = None
        self.waits: list[float] = []
        self.streams: list[FakeStream] = []
        self.mounts = Mounts(cast(Supervisor, self), self.address)

    def open(self, *of: Any) -> FakeStream:
        self.streams.append(FakeStream(*of))
        assert self.streams[-1].root == "/project"
        return self.streams[-1]

    def wait(self, timeout: float) -> Connection:
        self.waits.append(timeout)
        if self.away is not None:
            raise self.away
        return self.connection

    def told(self) -> list[tuple[str, bool, str | None]]:
        return [(one["name"], one["connected"], one["failure"]) for one in self.mounts.to_json()]

    def sshfs(self, name: str) -> socket.socket:
        mine, theirs = socket.socketpair()
        with theirs, socket.socket(socket.AF_UNIX) as link:
            link.connect(str(self.address))
            assert link.recv(1) == WELCOME
            socket.send_fds(link, [name.encode()], [theirs.fileno()])
        mine.settimeout(PATIENCE)
        return mine


@pytest.fixture
def parts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Parts]:
    made = Parts(tmp_path)
    monkeypatch.setattr(module, "SftpStream", made.open)
    yield made
    made.mounts.stop()


def test_an_sshfs_of_another_name_is_turned_away_at_once(parts: Parts) -> None:
    parts.mounts.add("data", "/project")
    with parts.sshfs("removed") as sshfs:
        assert sshfs.recv(1) == b""
    assert parts.streams == []


def test_the_reason_of_a_refusal_is_told_until_it_works_again(parts: Parts) -> None:
    parts.mounts.add("data", "/project")
    with parts.sshfs("data"):
        until(lambda: parts.streams, "the stream")
        parts.streams[0].end("no sftp-server")
        until(lambda: parts.told() == [("data", False, "no sftp-server")], "the reason")
    with parts.sshfs("data"):
        until(lambda: parts.told() == [("data", True, None)], "another stream")


def test_while_the_host_is_away_all_requests_share_one_grace(
    parts: Parts, monkeypatch: pytest.MonkeyPatch
) -> None:
    parts.mounts.add("data", "/project")
    parts.away = LinkLost("the connection broke")
    for _ in range(2):
        with parts.sshfs("data") as sshfs:
            assert sshfs.recv(1) == b""
    assert parts.waits[0] == pytest.approx(module.GRACE_SECONDS)
    assert parts.waits[1] < parts.waits[0]
    parts.away = None
    with parts.sshfs("data"):
        until(lambda: parts.streams, "the stream")
    with parts.sshfs("data"):
        until(lambda: len(parts.streams) == 2, "another stream")
    assert parts.waits[3] == pytest.approx(module.GRACE_SECONDS)


def test_a_folder_that_is_gone_is_an_error_with_the_path(parts: Parts) -> None:
    parts.address.parent.rmdir()
    with pytest.raises(JlrError, match="cannot listen at"):
        parts.mounts.add("data", "/project")


def test_a_visitor_that_hands_nothing_over_blocks_no_sshfs(parts: Parts) -> None:
    parts.mounts.add("data", "/project")
    with socket.socket(socket.AF_UNIX) as visitor:
        visitor.connect(str(parts.address))
        visitor.sendall(b"data")
        with parts.sshfs("data"):
            until(lambda: parts.streams, "the stream")
