"""Mounts on Windows: refused, because SSHFS-Win cannot take its socket from the link."""

from __future__ import annotations

import shutil

from jlremote.errors import JlrError
from jlremote.mounts.points import MountPoint
from jlremote.mounts.unmounting import Holder

_INSTALL = "winget install -e WinFsp.WinFsp SSHFS-Win.SSHFS-Win"


class Windows:
    """Windows, as `System` wants it."""

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
