"""The kernel's tables of TCP sockets, read as the kernel writes them."""

from __future__ import annotations

import os
import socket
import subprocess
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jlremote.place.host.addresses import (
    LISTENING,
    LISTENING_UNIX,
    Listener,
    listening_inodes,
    read_listeners,
    socket_inodes,
)
from tests.place.host.parts import ANYWHERE, ANYWHERE_6, LOOPBACK, LOOPBACK_6, row

MAPPED = "0000000000000000FFFF00000100007F"


@pytest.mark.parametrize(
    ("digits", "address", "everywhere"),
    [
        (ANYWHERE, "0.0.0.0", True),
        (LOOPBACK, "127.0.0.1", False),
        ("050011AC", "172.17.0.5", False),
        (ANYWHERE_6, "::", True),
        (LOOPBACK_6, "::1", False),
        (MAPPED, "127.0.0.1", False),
    ],
)
def test_an_address_is_read_as_the_kernel_writes_it(
    digits: str, address: str, everywhere: bool
) -> None:
    [found] = read_listeners(row(digits))
    assert found == Listener(address, 6006, 1000, "77")
    assert (found.everywhere, found.is_ipv4) == (everywhere, ":" not in address)


@pytest.mark.parametrize(
    "line",
    [
        "",
        "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt uid",
        row("0100007"),
        row("0100007G"),
        row("01" * 12),
        row(LOOPBACK).replace(":1776", ":port"),
        row(LOOPBACK).replace(" 1000 ", " root "),
    ],
)
def test_a_line_that_is_no_socket_is_passed_over(line: str) -> None:
    assert read_listeners(f"{line}\n{row(ANYWHERE)}") == (Listener("0.0.0.0", 6006, 1000, "77"),)


@given(st.text())
def test_any_text_is_read_without_an_error(text: str) -> None:
    assert all(isinstance(found, Listener) for found in read_listeners(text))


def test_descriptors_name_the_sockets_that_they_hold() -> None:
    listing = "lrwx------ 3 -> socket:[41]\nl-wx------ 4 -> pipe:[42]\n5 -> socket:[43]"
    assert socket_inodes(listing) == {"41", "43"}
    assert socket_inodes("ls: cannot open directory '/proc/1/fd'") == frozenset()


@pytest.mark.skipif(not Path("/proc/net/tcp").exists(), reason="this platform has no /proc/net/tcp")
def test_a_socket_of_this_process_is_found_with_its_owner_and_its_inode() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        printed = subprocess.run(["sh", "-c", LISTENING], capture_output=True, text=True)
        [found] = [one for one in read_listeners(printed.stdout) if one.port == port]
        descriptor = Path(f"/proc/self/fd/{listener.fileno()}").readlink()
    assert (found.address, found.user) == ("127.0.0.1", os.getuid())
    assert socket_inodes(f"3 -> {descriptor}") == {found.inode}


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
