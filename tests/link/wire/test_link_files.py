"""The files of a link: one set for each host and configuration, with names that sockets allow."""

from __future__ import annotations

import multiprocessing.connection as sockets
import os
from dataclasses import astuple
from pathlib import Path

import pytest

from jlremote.link.wire.link_files import link_files


@pytest.fixture(autouse=True)
def folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("XDG_RUNTIME_DIR", "XDG_STATE_HOME"):
        folder = tmp_path / name
        folder.mkdir(mode=0o700)
        monkeypatch.setenv(name, str(folder))


def test_another_host_or_configuration_shares_no_file(tmp_path: Path) -> None:
    links = [
        link_files("dgx", None),
        link_files("DGX", None),
        link_files("me@dgx", None),
        link_files("dgx", tmp_path / "config"),
        link_files("dgx", tmp_path / "other"),
    ]
    files = [file for link in links for file in astuple(link)[2:]]
    assert len(set(files)) == len(files)


@pytest.mark.skipif(os.name == "nt", reason="Windows has named pipes instead")
def test_a_folder_whose_path_is_too_long_for_sockets_has_them_elsewhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = []
    for letter in "xy":
        long = tmp_path / (letter * 100)
        long.mkdir(mode=0o700)
        monkeypatch.setenv("XDG_RUNTIME_DIR", str(long))
        files = link_files("dgx", None)
        assert files.lock.is_relative_to(long)
        found += [files.socket, files.mount_socket]
        files.socket.unlink(missing_ok=True)
        with sockets.Listener(str(files.socket)):
            assert files.socket.parent.stat().st_mode & 0o077 == 0
    assert len(set(found)) == 4
    for folder in {path.parent for path in found}:
        folder.rmdir()
