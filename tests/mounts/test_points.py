"""Mounts are known without being looked at."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from jlremote.errors import Usage
from jlremote.mounts.system import MountPoint, read_mountinfo, resolved

MOUNTINFO = rb"""
22 28 0:20 / /sys rw,nosuid,nodev,noexec,relatime shared:7 - sysfs sysfs rw
98 28 0:50 / /home/me/a\040b\134c\012d rw,nosuid shared:1 master:2 - fuse.sshfs dgx:/x\040y rw
""".strip()


def test_mountinfo_is_read_with_its_blanks_and_optional_fields() -> None:
    assert read_mountinfo(MOUNTINFO) == [
        MountPoint("/sys", "sysfs", "sysfs"),
        MountPoint("/home/me/a b\\c\nd", "fuse.sshfs", "dgx:/x y"),
    ]


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
