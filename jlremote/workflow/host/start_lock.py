"""One start of a session at a time: two would each launch a server, and one would be lost."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager

from jlremote.storage import paths
from jlremote.workflow.host.context import Context


@contextmanager
def alone(host: str, name: str, context: Context) -> Iterator[bool]:
    """Keep this machine's other starts of a session waiting; give whether one was waited for."""
    from filelock import FileLock, Timeout  # 20 ms that a session which runs need not cost

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
