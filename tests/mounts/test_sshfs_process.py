"""The sshfs process of a mount, played by a shell of that name; and mounts of other systems."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import psutil
import pytest

from jlremote.errors import JlrError
from jlremote.mounts import sshfs, system
from jlremote.mounts.sshfs import CONNECTOR
from jlremote.mounts.system import Holder, Linux, MacOS, MountPoint, this_system

needs_proc = pytest.mark.skipif(sys.platform != "linux", reason="a process is named by its file")


@contextmanager
def program(folder: Path, name: str, mount: str, script: str) -> Iterator[subprocess.Popen[bytes]]:
    """Run a script as the program `name` that serves `mount`."""
    link = folder / name
    if not link.exists():
        link.symlink_to("/bin/sh")
    argv = (str(link), "-c", f"{script}; :", f"ssh_command=python -P -m {CONNECTOR} {mount},ro")
    with subprocess.Popen(argv, stdin=subprocess.PIPE) as running:
        try:
            yield running
        finally:
            running.kill()


@needs_proc
def test_the_sshfs_of_a_mount_is_found_by_its_arguments(tmp_path: Path) -> None:
    with program(tmp_path, "sshfs", "abc", "read line") as mine:
        assert [found.pid for found in sshfs.processes("abc")] == [mine.pid]
        assert sshfs.processes("ab") == []
        assert sshfs.processes("abcd") == []


@needs_proc
@pytest.mark.parametrize("script", ["read line", "trap '' TERM; read line"])
def test_an_sshfs_that_does_not_end_is_ended(
    tmp_path: Path, script: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sshfs, "END_SECONDS", 0.05)
    with program(tmp_path, "sshfs", "abc", script) as mine:
        sshfs.end("abc", patience=0.0)
        assert mine.poll() is not None


def test_each_platform_has_its_system_and_windows_none(monkeypatch: pytest.MonkeyPatch) -> None:
    for platform, kind in (("linux", Linux), ("darwin", MacOS)):
        monkeypatch.setattr(sys, "platform", platform)
        assert isinstance(this_system(), kind)
    monkeypatch.setattr(sys, "platform", "win32")
    with pytest.raises(JlrError) as refused:
        this_system()
    assert "winget install -e WinFsp.WinFsp SSHFS-Win.SSHFS-Win" in (refused.value.hint or "")


def partition(kind: str) -> Any:
    return SimpleNamespace(mountpoint="/Users/ada/p", fstype=kind, device="lab:/srv/p")


@pytest.mark.parametrize("kind", ["macfuse", "macfuse_x", "osxfuse", "fuse-t"])
def test_a_mac_lists_mounts_of_each_fuse(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    both = [partition("apfs"), partition(kind)]
    monkeypatch.setattr(psutil, "disk_partitions", lambda **_: both)
    assert MacOS().mounted() == [MountPoint("/Users/ada/p", kind, "lab:/srv/p")]


def test_a_mac_names_the_programs_that_work_in_a_mount(monkeypatch: pytest.MonkeyPatch) -> None:
    infos = [("zsh", "/m/src"), (None, "/m"), ("vim", "/mm"), ("launchd", None)]
    running = [
        SimpleNamespace(pid=number, info={"name": name, "cwd": cwd})
        for number, (name, cwd) in enumerate(infos)
    ]
    monkeypatch.setattr(psutil, "process_iter", lambda _: running)
    assert MacOS().holders("/m") == [
        Holder(0, "zsh", "works in"),
        Holder(1, "a program", "works in"),
    ]


def test_a_mac_unmounts_by_force_where_linux_is_lazy(monkeypatch: pytest.MonkeyPatch) -> None:
    commands: list[tuple[str, ...]] = []
    monkeypatch.setattr(system, "refusal", commands.append)
    MacOS().unmount("/m", lazily=False)
    MacOS().unmount("/m", lazily=True)
    assert commands == [("/sbin/umount", "--", "/m"), ("/sbin/umount", "-f", "--", "/m")]
