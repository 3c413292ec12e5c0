"""Mount points, the programs that use a mount, and what a system lacks."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from jlremote.errors import JlrError, Usage
from jlremote.mounts import system
from jlremote.mounts.system import Linux, read_mountinfo, resolved

MOUNT = "/home/ada/project"


@pytest.fixture
def processes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(system, "_PROCESSES", tmp_path)
    (tmp_path / "self").mkdir()
    return tmp_path


def process(proc: Path, pid: int, name: str = "vim", **links: str) -> Path:
    folder = proc / str(pid)
    (folder / "fd").mkdir(parents=True)
    (folder / "comm").write_text(f"{name}\n")
    for link, target in {"cwd": "/", "root": "/", "exe": "/bin/vim", **links}.items():
        (folder / link).symlink_to(target)
    return folder


@pytest.mark.parametrize("elsewhere", ["/home/ada", f"{MOUNT}2", f"/x{MOUNT}"])
def test_a_program_elsewhere_does_not_hold_it(processes: Path, elsewhere: str) -> None:
    process(processes, 11, cwd=elsewhere, exe=elsewhere)
    assert Linux().holders(MOUNT) == []


def test_a_process_that_ends_meanwhile_is_passed_over(processes: Path) -> None:
    (processes / "12").mkdir()
    assert Linux().holders(MOUNT) == []


def test_a_machine_without_fuse_is_told_how_to_get_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = tmp_path / "sshfs"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(system, "_DEVICE", tmp_path / "no-fuse")
    with pytest.raises(JlrError, match="has no FUSE") as error:
        Linux().sshfs()
    assert "modprobe fuse" in (error.value.hint or "")


def test_without_fusermount_nothing_is_unmounted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert Linux().unmount(MOUNT, lazily=False) == "`fusermount3` is not installed"


MOUNTINFO = rb"""
22 28 0:20 / /sys rw,nosuid,nodev,noexec,relatime shared:7 - sysfs sysfs rw
98 28 0:50 / /home/me/a\040b\134c\012d rw,nosuid shared:1 master:2 - fuse.sshfs dgx:/x\040y rw
""".strip()


def test_mountinfo_is_read_with_its_blanks_and_optional_fields() -> None:
    assert read_mountinfo(MOUNTINFO) == ["/home/me/a b\\c\nd"]


def test_a_path_is_resolved_as_realpath_does(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "a" / "b").mkdir(parents=True)
    (tmp_path / "link").symlink_to("a/b")
    (tmp_path / "a" / "up").symlink_to("../link/..")
    (tmp_path / "absolute").symlink_to(tmp_path / "a" / "up")
    monkeypatch.chdir(tmp_path)
    for path in ("link", "a/up/b", "absolute/./b/..", "link/missing/x", "//", ".", "a//b/"):
        assert resolved(path, ()) == os.path.realpath(path), path


def test_a_circle_of_links_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a").symlink_to("b")
    (tmp_path / "b").symlink_to("a")
    with pytest.raises(Usage, match="circle"):
        resolved(str(tmp_path / "a" / "x"), ())


def test_nothing_in_a_mount_is_looked_at(tmp_path: Path) -> None:
    mount = tmp_path / "mount"
    mount.mkdir()
    (mount / "link").symlink_to("/etc")
    (tmp_path / "to").symlink_to("mount")
    assert resolved(str(tmp_path / "to" / "link"), {str(mount)}) == f"{mount}/link"
    assert resolved(str(tmp_path / "to"), {str(mount)}) == str(mount)
