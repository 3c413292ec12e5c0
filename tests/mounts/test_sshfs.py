"""What is said about the sshfs that a system has, and where it has none, how to get it."""

from __future__ import annotations

from pathlib import Path

import pytest

from jlremote.errors import JlrError
from jlremote.mounts import sshfs, system
from jlremote.mounts.system import MacOS, System, Windows


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
    assert f"sshfs {version} has the holes" in said
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
        ("ID=debian\n", "sudo apt install sshfs"),
        ('NAME="Linux Mint"\nID=linuxmint\nID_LIKE="ubuntu debian"\n', "sudo apt install sshfs"),
        ("ID=fedora\n", "sudo dnf install fuse-sshfs"),
        ('ID="rocky"\nID_LIKE="rhel centos fedora"\n', "epel-release"),
        ("ID=arch\n", "sudo pacman -S sshfs"),
        ('ID="opensuse-leap"\nID_LIKE="suse opensuse"\n', "sudo zypper install sshfs"),
        ("ID=alpine\n", "sudo apk add sshfs"),
        ("ID=other\n", "`sshfs` or `fuse-sshfs`"),
        ("", "`sshfs` or `fuse-sshfs`"),
    ],
)
def test_each_distribution_has_its_install_command(
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


def test_windows_is_told_its_own_program(nothing_installed: Path) -> None:
    assert "winget install -e WinFsp.WinFsp SSHFS-Win.SSHFS-Win" in hint_of(Windows())


def hint_of(system: System) -> str:
    """Return the advice of a system that has no sshfs; commands end with exit code 1 for it."""
    with pytest.raises(JlrError) as failure:
        system.sshfs()
    assert failure.value.exit_code == 1
    return failure.value.hint or ""
