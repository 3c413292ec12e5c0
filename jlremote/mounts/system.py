"""The operating system's part in a mount, behind one door."""

from __future__ import annotations

import shutil
import sys
from typing import Protocol

from jlremote.errors import JlrError
from jlremote.mounts.points import Holder, MountPoint, refusal

# The file system types of macFUSE, its predecessor and FUSE-T.
_KINDS = ("macfuse", "osxfuse", "fuse-t")
_MACFUSE = (
    "install macFUSE: `brew install --cask macfuse && brew install gromgit/fuse/sshfs-mac`; "
    "or, without a kernel extension, FUSE-T: "
    "`brew install macos-fuse-t/cask/fuse-t macos-fuse-t/cask/fuse-t-sshfs`"
)
_INSTALL = "winget install -e WinFsp.WinFsp SSHFS-Win.SSHFS-Win"


class System(Protocol):
    """How a system mounts, lists and unmounts. No method looks into a mount."""

    options: tuple[str, ...]
    """Further options of sshfs on this system."""

    def sshfs(self) -> str:
        """Return the path of sshfs.

        Raises:
            JlrError: it is missing, or the system cannot mount; the hint tells what to install.
        """

    def mounted(self) -> list[MountPoint]:
        """Return the mounts of sshfs."""

    def unmount(self, path: str, *, lazily: bool) -> str | None:
        """Unmount `path`, or take it out of the tree lazily although programs use it.

        Return why the system refuses, `None` if it does not.
        """

    def holders(self, path: str) -> list[Holder]:
        """Return the programs that use a mount."""


class MacOS:
    """macOS, with macFUSE or FUSE-T."""

    options: tuple[str, ...] = ("noappledouble",)

    def sshfs(self) -> str:
        program = shutil.which("sshfs")
        if program is None:
            raise JlrError("`sshfs` is not installed", hint=_MACFUSE)
        return program

    def mounted(self) -> list[MountPoint]:
        """Read the table of getfsstat(2), which does not ask the file systems."""
        import psutil

        return [
            MountPoint(partition.mountpoint, partition.fstype, partition.device)
            for partition in psutil.disk_partitions(all=True)
            if partition.fstype.startswith(_KINDS)
        ]

    def unmount(self, path: str, *, lazily: bool) -> str | None:
        """Run `umount`, with force where Linux would unmount lazily."""
        return refusal(("/sbin/umount", *(("-f",) if lazily else ()), "--", path))

    def holders(self, path: str) -> list[Holder]:
        """Return the programs that work in it, as far as the system shows them."""
        import psutil

        found = []
        for process in psutil.process_iter(["name", "cwd"]):
            folder = process.info["cwd"] or ""
            if folder == path or folder.startswith(f"{path}/"):
                found.append(Holder(process.pid, process.info["name"] or "a program", "works in"))
        return found


class Windows:
    """Windows refuses to mount: SSHFS-Win cannot take its socket from the link."""

    options: tuple[str, ...] = ()

    def sshfs(self) -> str:
        """Refuse, and say how to mount without jlr."""
        by_hand = r"`net use X: \\sshfs\USER@HOST\FOLDER` mounts with a login of its own"
        if shutil.which("sshfs-win") is None:
            raise JlrError("SSHFS-Win is not installed", hint=f"`{_INSTALL}`; then {by_hand}")
        raise JlrError("`jlr mount` does not work on Windows yet", hint=by_hand)

    def mounted(self) -> list[MountPoint]:
        return []

    def unmount(self, path: str, *, lazily: bool) -> str | None:
        """Say how to unmount without jlr."""
        return f"use `net use {path} /delete`"

    def holders(self, path: str) -> list[Holder]:
        return []


def this_system() -> System:
    """Return the system of this machine."""
    if sys.platform == "win32":
        return Windows()
    if sys.platform == "darwin":
        return MacOS()
    from jlremote.mounts.linux import Linux

    return Linux()
