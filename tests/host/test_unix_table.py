"""The kernel's table of unix sockets, as this machine writes it."""

from __future__ import annotations

import socket
import subprocess
from pathlib import Path
from tempfile import TemporaryDirectory

from jlremote.host.socket_tables import LISTENING_UNIX, listening_inodes, socket_inodes


def table() -> str:
    return subprocess.run(["sh", "-c", LISTENING_UNIX], capture_output=True, text=True).stdout


def test_only_a_socket_that_listens_is_found_by_its_whole_path() -> None:
    # pytest's folders may be too long for a socket's path.
    with TemporaryDirectory(dir="/tmp") as short, socket.socket(socket.AF_UNIX) as listener:
        path = f"{short}/a  sock"
        listener.bind(path)
        assert listening_inodes(table(), path) == frozenset()
        listener.listen()
        descriptor = str(Path(f"/proc/self/fd/{listener.fileno()}").readlink())
        assert listening_inodes(table(), path) == socket_inodes(descriptor)
        assert listening_inodes(table(), f"{short}/a") == frozenset()
    assert listening_inodes(table(), path) == frozenset()


def test_lines_that_are_no_rows_are_passed_over() -> None:
    assert listening_inodes("\n0: 2 0\nNum RefCount Protocol Flags Type St Inode Path\n", "/p") == (
        frozenset()
    )
