"""The operating system's part in a mount, behind one door."""

from __future__ import annotations

import sys
from typing import Protocol

from jlremote.mounts.points import MountPoint
from jlremote.mounts.unmounting import Holder


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


def this_system() -> System:
    """Return the system of this machine."""
    if sys.platform == "win32":
        from jlremote.mounts.windows import Windows

        return Windows()
    if sys.platform == "darwin":
        from jlremote.mounts.macos import MacOS

        return MacOS()
    from jlremote.mounts.linux import Linux

    return Linux()
