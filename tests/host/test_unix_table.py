"""The kernel's table of unix sockets, as this machine writes it."""

from __future__ import annotations

import socket
import subprocess
from pathlib import Path

from jlremote.host.tcp_table import socket_inodes
from jlremote.host.unix_table import LISTENING, listening_inodes


def table() -> str:
    return subprocess.run(["sh", "-c", LISTENING], capture_output=True, text=True).stdout


def test_only_a_socket_that_listens_is_found_by_its_whole_path(tmp_path: Path) -> None:
    path = str(tmp_path / "a  sock")
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(path)
        assert listening_inodes(table(), path) == frozenset()
        listener.listen()
        descriptor = str(Path(f"/proc/self/fd/{listener.fileno()}").readlink())
        assert listening_inodes(table(), path) == socket_inodes(descriptor)
        assert listening_inodes(table(), str(tmp_path / "a")) == frozenset()
    assert listening_inodes(table(), path) == frozenset()


def test_lines_that_are_no_rows_are_passed_over() -> None:
    assert listening_inodes("\n0: 2 0\nNum RefCount Protocol Flags Type St Inode Path\n", "/p") == (
        frozenset()
    )
