"""Mounts on macOS: macFUSE or FUSE-T."""

from __future__ import annotations

import shutil

import psutil

from jlremote.errors import JlrError
from jlremote.mounts.points import Holder, MountPoint, refusal

# The file system types of macFUSE, its predecessor and FUSE-T.
_KINDS = ("macfuse", "osxfuse", "fuse-t")
_HINT = (
    "install macFUSE: `brew install --cask macfuse && brew install gromgit/fuse/sshfs-mac`; "
    "or, without a kernel extension, FUSE-T: "
    "`brew install macos-fuse-t/cask/fuse-t macos-fuse-t/cask/fuse-t-sshfs`"
)


class MacOS:
    """macOS, as `System` wants it."""

    options: tuple[str, ...] = ("noappledouble",)

    def sshfs(self) -> str:
        """Find sshfs."""
        program = shutil.which("sshfs")
        if program is None:
            raise JlrError("`sshfs` is not installed", hint=_HINT)
        return program

    def mounted(self) -> list[MountPoint]:
        """Read the table of getfsstat(2), which does not ask the file systems."""
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
        found = []
        for process in psutil.process_iter(["name", "cwd"]):
            folder = process.info["cwd"] or ""
            if folder == path or folder.startswith(f"{path}/"):
                found.append(Holder(process.pid, process.info["name"] or "a program", "works in"))
        return found
