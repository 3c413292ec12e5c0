"""The operating system's part in a mount, behind one door."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Protocol

from jlremote.errors import JlrError
from jlremote.mounts.points import Holder, MountPoint, read_mountinfo, refusal
from jlremote.place.host import installation

_DEVICE = Path("/dev/fuse")
_OS_RELEASE = Path("/etc/os-release")
_PROCESSES = Path("/proc")

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


class Linux:
    """Linux: FUSE 3, `fusermount3`, and `/proc`, where a look at a mount cannot hang."""

    options: tuple[str, ...] = ()

    def sshfs(self) -> str:
        """Find sshfs, and check that the kernel has FUSE."""
        program = shutil.which("sshfs")
        if program is None:
            raise JlrError("`sshfs` is not installed", hint=_install_hint())
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
        """Read the links of all processes in `/proc`, as far as the user may see them."""
        found = []
        for process in _PROCESSES.iterdir():
            if process.name.isdigit() and process.name != str(os.getpid()):
                how = _use(process, path)
                if how is not None:
                    found.append(Holder(int(process.name), _name(process), how))
        return found


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
    return Linux()


def _install_hint() -> str:
    text = ""
    with suppress(OSError):
        text = _OS_RELEASE.read_text("utf-8")
    [line] = installation.commands(
        "sshfs", installation.distribution_of(installation.os_release(text))
    )
    if line.startswith("https://"):
        return f"{line} says how; the package is called `sshfs` or `fuse-sshfs`"
    return f"`{line}` installs it"


def _use(process: Path, mount: str) -> str | None:
    if any(_inside(target, mount) for target in _targets([process / "cwd", process / "root"])):
        return "works in"
    if any(_inside(target, mount) for target in _targets(_entries(process / "fd"))):
        return "has a file open in"
    if _inside(next(_targets([process / "exe"]), ""), mount) or _maps(process, mount):
        return "runs from"
    return None


def _entries(folder: Path) -> list[Path]:
    with suppress(OSError):
        return list(folder.iterdir())
    return []


def _targets(links: list[Path]) -> Iterator[str]:
    for link in links:
        with suppress(OSError):
            yield str(link.readlink())


def _maps(process: Path, mount: str) -> bool:
    """Return whether the process has mapped a file of the mount, for example a library."""
    try:
        lines = os.fsdecode((process / "maps").read_bytes()).splitlines()
    except OSError:
        return False
    paths = (line.split(maxsplit=5)[5:] for line in lines)
    return any(_inside(path[0], mount) for path in paths if path)


def _inside(path: str, mount: str) -> bool:
    return path == mount or path.startswith(f"{mount}/")


def _name(process: Path) -> str:
    with suppress(OSError):
        return (process / "comm").read_text("utf-8", "replace").strip()
    return "a program"
