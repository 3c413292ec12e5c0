"""The sshfs process of a mount."""

from __future__ import annotations

import psutil

from jlremote.mounts.sshfs import CONNECTOR

_PATIENCE_SECONDS = 3.0


def find(name: str) -> list[psutil.Process]:
    """Return the sshfs processes of the mount `name`; empty if it has ended."""
    wanted = f"-m {CONNECTOR} {name},"
    return [process for process in psutil.process_iter(["name"]) if _is(process, wanted)]


def _is(process: psutil.Process, wanted: str) -> bool:
    # Its arguments are only read if its name fits: reading them may hang with the process.
    if process.info["name"] != "sshfs":
        return False
    try:
        return any(wanted in word for word in process.cmdline())
    except psutil.Error:
        return False


def end(name: str, *, patience: float = _PATIENCE_SECONDS) -> None:
    """End the mount's sshfs, by force after `patience` seconds; its end also unmounts."""
    _, left = psutil.wait_procs(find(name), timeout=patience)
    for process in left:
        process.terminate()
    _, left = psutil.wait_procs(left, timeout=_PATIENCE_SECONDS)
    for process in left:
        process.kill()
    psutil.wait_procs(left, timeout=_PATIENCE_SECONDS)
