"""The operating system's part in a mount, behind one door."""

from __future__ import annotations

import shutil
import sys
from typing import Protocol

from jlremote.errors import JlrError
from jlremote.mounts.points import Holder, MountPoint

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
        """Return nothing: jlr mounts nothing here."""
        return []

    def unmount(self, path: str, *, lazily: bool) -> str | None:
        """Say how to unmount without jlr."""
        return f"use `net use {path} /delete`"

    def holders(self, path: str) -> list[Holder]:
        """Return nothing."""
        return []


def this_system() -> System:
    """Return the system of this machine."""
    if sys.platform == "win32":
        return Windows()
    if sys.platform == "darwin":
        from jlremote.mounts.macos import MacOS

        return MacOS()
    from jlremote.mounts.linux import Linux

    return Linux()
