"""The lab's folder, and the locks by which several runs share one machine."""

from __future__ import annotations

import fcntl
import os
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

Say = Callable[[str], None]


class LabError(Exception):
    """The lab could not do its part; the message says which part and what it printed."""


def root() -> Path:
    """Return the lab's folder, made if need be; the lab's user may pass through it."""
    folder = Path(os.environ.get("JLR_LAB_DIR", "/var/tmp/jlr-lab"))
    # A unix socket's path holds at most 107 bytes, and containerd's are the longest below here.
    if len(str(folder)) > 50:
        raise LabError(
            f"the lab's folder `{folder}` is too long for unix sockets: at most 50 bytes"
        )
    folder.mkdir(mode=0o755, parents=True, exist_ok=True)
    return folder


def open_lock(path: Path) -> IO[str]:
    """Return `path` opened for `flock`, which the kernel releases however its holder ends."""
    path.parent.mkdir(parents=True, exist_ok=True)
    return path.open("a+", encoding="utf-8")


@contextmanager
def exclusive(path: Path, say: Say, reason: str, timeout: float = 600) -> Iterator[IO[str]]:
    """Hold the lock at `path`; say once that we wait, and for what."""
    with open_lock(path) as lock:
        wait_for_lock(lock, say, reason, timeout)
        yield lock


def wait_for_lock(lock: IO[str], say: Say, reason: str, timeout: float) -> None:
    """Lock an open file, asking every fifth of a second because `flock` itself knows no limit."""
    limit = time.monotonic() + timeout
    waiting = False
    while not try_lock(lock):
        if not waiting:
            say(f"lab: waiting for {reason} ({lock.name})")
            waiting = True
        if time.monotonic() > limit:
            raise LabError(f"waited {timeout:.0f} s for {reason} ({lock.name})")
        time.sleep(0.2)


def try_lock(lock: IO[str]) -> bool:
    """Lock an open file unless another process holds it; return whether it is ours."""
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


class PrivateFolder:
    """A folder of this run alone, below the lab's, that the next run deletes if this one cannot.

    Its lock is held until `remove`, so a folder without a held lock is left over.
    """

    def __init__(self, prefix: str) -> None:
        with exclusive(root() / "folders.lock", print, "another run's folders"):
            sweep()
            self.path = Path(tempfile.mkdtemp(dir=root(), prefix=f"run-{prefix}-"))
            self._lock = open_lock(self.path / ".lock")
            try_lock(self._lock)
        self.path.chmod(0o755)  # sshd reads the keys below as the user who logs in

    def remove(self) -> None:
        """Delete it. Twice is fine."""
        shutil.rmtree(self.path, ignore_errors=True)
        self._lock.close()


def sweep() -> None:
    for folder in root().glob("run-*"):
        with open_lock(folder / ".lock") as lock:
            if try_lock(lock):
                shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def private_folder(prefix: str) -> Iterator[Path]:
    folder = PrivateFolder(prefix)
    try:
        yield folder.path
    finally:
        folder.remove()
