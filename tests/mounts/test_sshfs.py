"""What is said about the sshfs that a system has, and where it has none, how to get it."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import psutil
import pytest

from jlremote.errors import JlrError, Usage
from jlremote.laptop.sessions import MountRecord
from jlremote.mounts import sshfs, system
from jlremote.mounts.mount import MountRequest, mount
from jlremote.mounts.sshfs import CONNECTOR
from jlremote.mounts.system import Linux, MacOS, System, this_system


@pytest.fixture
def nothing_installed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A machine whose PATH is an empty folder, which is returned."""
    monkeypatch.setenv("PATH", str(tmp_path))
    return tmp_path


def program(folder: Path, version: str, help_text: str = "") -> str:
    """Make an sshfs that only says which it is."""
    path = folder / "sshfs"
    path.write_text(
        f'#!/bin/sh\ncase $1 in --version) echo "SSHFS version {version}";;'
        f' --help) echo "{help_text}";; esac\n'
    )
    path.chmod(0o755)
    return str(path)


@pytest.mark.parametrize("version", ["3.7.5", "3.7.3", "2.10", "3.7"])
def test_an_sshfs_below_3_7_6_is_warned_about_with_both_holes(tmp_path: Path, version: str) -> None:
    said = sshfs.warning(program(tmp_path, version))
    assert said is not None
    assert f"sshfs {version} has the security bugs" in said
    assert "CVE-2026-47187" in said
    assert "CVE-2026-48711" in said
    assert "3.7.6 or later" in said


@pytest.mark.parametrize("version", ["3.7.6", "3.7.10", "3.8", "4.0.1"])
def test_a_later_version_is_not_warned_about(tmp_path: Path, version: str) -> None:
    assert sshfs.warning(program(tmp_path, version)) is None


def test_a_version_repaired_by_its_distribution_is_recognized(tmp_path: Path) -> None:
    assert sshfs.warning(program(tmp_path, "3.7.3", "-o contain_symlinks")) is None


@pytest.mark.parametrize(
    ("os_release", "line"),
    [
        ('ID="rocky"\nID_LIKE="rhel centos fedora"\n', "epel-release"),
        ("", "`sshfs` or `fuse-sshfs`"),
    ],
)
def test_a_distribution_has_its_install_command(
    nothing_installed: Path, monkeypatch: pytest.MonkeyPatch, os_release: str, line: str
) -> None:
    file = nothing_installed / "os-release"
    file.write_text(os_release)
    monkeypatch.setattr(system, "_OS_RELEASE", file)
    assert line in hint_of(system.Linux())


def test_macos_is_told_both_ways_to_install_sshfs(nothing_installed: Path) -> None:
    hint = hint_of(MacOS())
    assert "brew install --cask macfuse" in hint
    assert "fuse-t-sshfs" in hint


def hint_of(system: System) -> str:
    """Return the advice of a system that has no sshfs; commands end with exit code 1 for it."""
    with pytest.raises(JlrError) as failure:
        system.sshfs()
    assert failure.value.exit_code == 1
    return failure.value.hint or ""


needs_proc = pytest.mark.skipif(sys.platform != "linux", reason="a process is named by its file")


@contextmanager
def running_sshfs(folder: Path, script: str) -> Iterator[subprocess.Popen[bytes]]:
    """Run a script as the sshfs that serves the mount `abc`."""
    (link := folder / "sshfs").symlink_to("/bin/sh")
    argv = (str(link), "-c", f"{script}; :", f"ssh_command=python -P -m {CONNECTOR} abc,ro")
    with subprocess.Popen(argv, stdin=subprocess.PIPE) as running:
        try:
            yield running
        finally:
            running.kill()


@needs_proc
def test_the_sshfs_of_a_mount_is_found_by_its_arguments(tmp_path: Path) -> None:
    with running_sshfs(tmp_path, "read line") as mine:
        assert [found.pid for found in sshfs.processes("abc")] == [mine.pid]
        assert sshfs.processes("ab") == []
        assert sshfs.processes("abcd") == []


@needs_proc
@pytest.mark.parametrize("script", ["read line", "trap '' TERM; read line"])
def test_an_sshfs_that_does_not_end_is_ended(
    tmp_path: Path, script: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sshfs, "END_SECONDS", 0.05)
    with running_sshfs(tmp_path, script) as mine:
        sshfs.end("abc", patience=0.0)
        assert mine.poll() is not None


def test_each_platform_has_its_system(monkeypatch: pytest.MonkeyPatch) -> None:
    for platform, kind in (("linux", Linux), ("darwin", MacOS), ("win32", system.Windows)):
        monkeypatch.setattr(sys, "platform", platform)
        assert isinstance(this_system(), kind)


def test_windows_is_told_to_install_sshfs_win_or_to_copy_and_finds_it_there(
    nothing_installed: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hint = hint_of(system.Windows())
    assert "winget install -e WinFsp.WinFsp SSHFS-Win.SSHFS-Win" in hint
    assert "jlr cp" in hint
    folder = nothing_installed / r"\SSHFS-Win\bin"  # one name on this system
    monkeypatch.setenv("PROGRAMFILES", f"{nothing_installed}/")
    folder.mkdir()
    (folder / "sshfs.exe").touch(mode=0o755)
    assert system.Windows().sshfs() == str(folder / "sshfs.exe")


def test_windows_runs_sshfs_win_for_this_user_alone_and_follows_no_links(tmp_path: Path) -> None:
    mount = MountRecord("X:", "/srv/p", "dgx", "cont1", None, False, 0)
    argv = sshfs.argv(program(tmp_path, "3.7.3"), mount, system.Windows.options)
    options = (
        f"ssh_command={Path(sys.executable).name} -P -m {CONNECTOR} {mount.name},"
        "fsname=dgx:/srv/p,reconnect,idmap=user,nosuid,nodev,"
        "uid=-1,gid=-1,umask=077,create_umask=022,create_file_umask=133"
    )
    assert argv[1:] == ("-o", options, "jlr:/srv/p", "X:")


def test_windows_makes_no_mount_that_must_be_read_only(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(system.Windows, "sshfs", lambda _: "sshfs.exe")
    monkeypatch.setattr("jlremote.mounts.mount.this_system", system.Windows)
    with pytest.raises(Usage, match="no read-only mounts"):
        mount(MountRequest("X:", read_only=True), cast("Any", None))


def test_windows_keeps_a_mount_in_which_a_program_works(monkeypatch: pytest.MonkeyPatch) -> None:
    working = SimpleNamespace(pid=7, info={"name": "pwsh.exe", "cwd": "X:\\src"})
    monkeypatch.setattr(psutil, "process_iter", lambda _: [working])
    assert system.Windows().holders("X:") == ["pwsh.exe (process 7) works in it"]
    unmount = system.Windows().unmount
    assert unmount("X:", lazily=False) == "it is busy"
    assert unmount("Y:", lazily=False) is unmount("X:", lazily=True) is None


def partition(kind: str) -> Any:
    return SimpleNamespace(mountpoint="/Users/ada/p", fstype=kind, device="lab:/srv/p")


@pytest.mark.parametrize("kind", ["macfuse", "macfuse_x", "osxfuse", "fuse-t"])
def test_a_mac_lists_mounts_of_each_fuse(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    both = [partition("apfs"), partition(kind)]
    monkeypatch.setattr(psutil, "disk_partitions", lambda **_: both)
    assert MacOS().mounted() == ["/Users/ada/p"]


def test_a_mac_names_the_programs_that_work_in_a_mount(monkeypatch: pytest.MonkeyPatch) -> None:
    infos = [("zsh", "/m/src"), (None, "/m"), ("vim", "/mm"), ("launchd", None)]
    running = [
        SimpleNamespace(pid=number, info={"name": name, "cwd": cwd})
        for number, (name, cwd) in enumerate(infos)
    ]
    monkeypatch.setattr(psutil, "process_iter", lambda _: running)
    assert MacOS().holders("/m") == [
        "zsh (process 0) works in it",
        "a program (process 1) works in it",
    ]


def test_a_mac_unmounts_by_force_where_linux_is_lazy(monkeypatch: pytest.MonkeyPatch) -> None:
    commands: list[tuple[str, ...]] = []
    monkeypatch.setattr(system, "refusal", commands.append)
    MacOS().unmount("/m", lazily=False)
    MacOS().unmount("/m", lazily=True)
    assert commands == [("/sbin/umount", "--", "/m"), ("/sbin/umount", "-f", "--", "/m")]
