"""What the link must not keep of the shell that started it: its folder, limits and core dumps."""

from __future__ import annotations

import contextlib
import os
import sys
from pathlib import Path

# A shell sets them for its own programs, and the link serves others, for days.
_LIMITS = ("AS", "CPU", "DATA", "FSIZE", "NOFILE", "NPROC", "RSS")
# A page takes some ten, and the link keeps 32 for itself.
_FEW_FILES = 256


def leave() -> Path:
    """Let go of the current folder, of limits that can be raised, and of core dumps.

    Return what the folder was; relative paths in ssh's settings begin there.
    """
    root = Path(sys.executable).anchor
    try:
        folder = Path.cwd()
    except OSError:  # it was removed
        folder = Path(root)
    os.chdir(root)  # a mount with a process's folder cannot be unmounted
    _raise_limits()
    _refuse_core_dumps()
    return folder


def _raise_limits() -> None:
    if sys.platform != "win32":
        import resource

        for limit in (getattr(resource, f"RLIMIT_{name}", None) for name in _LIMITS):
            if limit is not None:
                _, most = resource.getrlimit(limit)
                with contextlib.suppress(OSError, ValueError):  # macOS names more than it allows
                    resource.setrlimit(limit, (most, most))


def remarks() -> tuple[str, ...]:
    """Return a sentence if the link may open so few files that it cannot serve many pages."""
    if sys.platform != "win32":
        import resource

        limit, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
        if 0 <= limit < _FEW_FILES:
            few = f"the link may have only {limit} files and connections open, the `ulimit -Hn` of"
            way = "`jlr disconnect HOST`, then go on in another shell"
            return (f"{few} the shell that started it: {way}",)
    return ()


def _refuse_core_dumps() -> None:
    """Let no crash write the link's memory, which has passwords, to a disk.

    Linux (fs/coredump.c) gives a program that collects dumps none at a limit of 1, but does at 0.
    No file is written at either.
    """
    if sys.platform != "win32":
        import resource

        _, most = resource.getrlimit(resource.RLIMIT_CORE)
        limit = 1 if most else 0
        resource.setrlimit(resource.RLIMIT_CORE, (limit, limit))
