"""Mounts on Linux: FUSE 3, `/proc` and `fusermount3`."""

from __future__ import annotations

import shutil
from pathlib import Path

from jlremote.errors import JlrError
from jlremote.mounts.holders import Holder, holders
from jlremote.mounts.points import MountPoint, read_mountinfo
from jlremote.mounts.unmounting import refusal

_DEVICE = Path("/dev/fuse")
_OS_RELEASE = Path("/etc/os-release")
# By ID and ID_LIKE of os-release(5).
_INSTALL = {
    "debian": "sudo apt install sshfs",
    "ubuntu": "sudo apt install sshfs",
    "fedora": "sudo dnf install fuse-sshfs",
    "rhel": "sudo dnf install epel-release && sudo dnf install fuse-sshfs",
    "arch": "sudo pacman -S sshfs",
    "suse": "sudo zypper install sshfs",
    "opensuse": "sudo zypper install sshfs",
    "alpine": "sudo apk add sshfs",
}


class Linux:
    """See `System`."""

    options: tuple[str, ...] = ()

    def sshfs(self) -> str:
        """Find sshfs, and see that the kernel has FUSE."""
        program = shutil.which("sshfs")
        if program is None:
            raise JlrError("`sshfs` is not installed", hint=f"install it: {_install_line()}")
        if not _DEVICE.exists():
            raise JlrError(
                f"this machine has no FUSE: `{_DEVICE}` is missing",
                hint="`sudo modprobe fuse`; a container needs `--device /dev/fuse`",
            )
        return program

    def mounted(self) -> list[MountPoint]:
        """Read `/proc/self/mountinfo`."""
        points = read_mountinfo(Path("/proc/self/mountinfo").read_bytes())
        return [point for point in points if point.kind == "fuse.sshfs"]

    def unmount(self, path: str, *, lazily: bool) -> str | None:
        """Run `fusermount3`, which needs no root and does not look into the mount."""
        program = shutil.which("fusermount3") or shutil.which("fusermount")
        if program is None:
            return "`fusermount3` is not installed"
        return refusal((program, "-u", *(("-z",) if lazily else ()), "--", path))

    def holders(self, path: str) -> list[Holder]:
        """Read the links of all processes."""
        return holders(path)


def _install_line() -> str:
    for name in _distribution(_OS_RELEASE):
        if name in _INSTALL:
            return f"`{_INSTALL[name]}`"
    return "your distribution calls the package `sshfs` or `fuse-sshfs`"


def _distribution(os_release: Path) -> list[str]:
    """Return this distribution's name, and then those it descends from."""
    try:
        lines = os_release.read_text("utf-8").splitlines()
    except OSError:
        return []
    facts = dict(line.split("=", 1) for line in lines if "=" in line)
    names = f"{facts.get('ID', '')} {facts.get('ID_LIKE', '')}"
    return names.replace('"', "").split()
