"""What differs between systems, behind one door."""

from __future__ import annotations

import sys
from typing import Protocol

from jlremote.mounts.holders import Holder
from jlremote.mounts.points import MountPoint


class System(Protocol):
    """How this system mounts, lists and unmounts. Nothing here looks into a mount."""

    options: tuple[str, ...]
    """What sshfs wants on this system besides."""

    def sshfs(self) -> str:
        """Return the program.

        Raises:
            JlrError: it is missing, or the system cannot mount; the hint tells what to install.
        """
        ...

    def mounted(self) -> list[MountPoint]:
        """Return the mounts of sshfs."""
        ...

    def unmount(self, path: str, *, lazily: bool) -> str | None:
        """Unmount; return what the system says if it refuses.

        Args:
            path: the mount point.
            lazily: take it out of the tree even if programs use it.
        """
        ...

    def holders(self, path: str) -> list[Holder]:
        """Return the programs that use a mount."""
        ...


def this_system() -> System:
    """Return the system that we run on."""
    if sys.platform == "win32":
        from jlremote.mounts.windows import Windows

        return Windows()
    if sys.platform == "darwin":
        from jlremote.mounts.macos import MacOS

        return MacOS()
    from jlremote.mounts.linux import Linux

    return Linux()
