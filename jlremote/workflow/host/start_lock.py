"""A lock for one start of a session at a time: two would each launch a server and lose one."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager

from jlremote.storage import paths
from jlremote.workflow.host.context import Context


@contextmanager
def alone(host: str, name: str, context: Context) -> Iterator[bool]:
    """Hold the lock of a session's start; yield whether another start had it."""
    from filelock import FileLock, Timeout  # 20 ms that only a new session needs

    word = hashlib.sha256(f"{host}\0{name}".encode("utf-8", "surrogateescape")).hexdigest()[:16]
    lock = FileLock(paths.runtime_directory() / f"start-{word}.lock", mode=0o600)
    waited = False
    try:
        lock.acquire(timeout=0)
    except Timeout:
        waited = True
        with context.progress.step(f"Wait for another start of {name}"):
            lock.acquire()
    try:
        yield waited
    finally:
        lock.release()
