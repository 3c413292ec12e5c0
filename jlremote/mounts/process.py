"""The sshfs of a mount as a process. It has no pid file: a pid is never trusted."""

from __future__ import annotations

import psutil

from jlremote.mounts.sshfs import CONNECTOR

_PATIENCE_SECONDS = 3.0


def find(name: str) -> list[psutil.Process]:
    """Return the sshfs of the mount called `name`; none if it ended."""
    wanted = f"-m {CONNECTOR} {name},"
    return [process for process in psutil.process_iter(["name"]) if _is(process, wanted)]


def _is(process: psutil.Process, wanted: str) -> bool:
    # The arguments of a process are only read when its name fits: reading them needs its memory,
    # which a process that hangs may have locked.
    if process.info["name"] != "sshfs":
        return False
    try:
        return any(wanted in word for word in process.cmdline())
    except psutil.Error:
        return False


def end(name: str, *, patience: float = _PATIENCE_SECONDS) -> None:
    """End the mount's sshfs, which also frees what it mounted.

    Args:
        name: the mount's.
        patience: seconds in which it may end by itself.
    """
    _, left = psutil.wait_procs(find(name), timeout=patience)
    for process in left:
        process.terminate()
    _, left = psutil.wait_procs(left, timeout=_PATIENCE_SECONDS)
    for process in left:
        process.kill()
    psutil.wait_procs(left, timeout=_PATIENCE_SECONDS)
