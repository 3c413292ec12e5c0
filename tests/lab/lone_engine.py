"""A further dockerd that a test may stop and start, beside the one that every run shares.

It has a bridge of its own and leaves the machine's firewall alone, so the two do not meet. Its
images are copied from the shared one and kept; one run at a time uses it.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import IO

from tests.lab import images
from tests.lab.bridge import new_bridge
from tests.lab.engine import Engine, spawn, stop
from tests.lab.place import LabError, Say, exclusive, root
from tests.lab.programs import end, wait_ended, wait_until

PATIENCE = 900.0


class LoneEngine:
    """A dockerd that can be restarted, with containers that live on or that end with it."""

    def __init__(self, lock: IO[str], bridge: str, options: tuple[str, ...] = ()) -> None:
        self.engine = Engine(root() / "lone")
        self._lock = lock
        self._bridge = bridge
        self._options = options

    def start(self, *, live_restore: bool, toolkit: bool = True) -> None:
        """Start dockerd and wait until it answers."""
        network = (f"--bridge={self._bridge}", "--iptables=false", "--ip-masq=false")
        keep = ("--live-restore",) if live_restore else ()
        spawn(self.engine, self._lock, *network, *keep, *self._options, toolkit=toolkit)
        try:
            wait_until(self.engine.answers, "the start of the lone dockerd", timeout=60)
        except LabError as late:
            tail = self.engine.log.read_text(encoding="utf-8", errors="replace")[-2000:]
            raise LabError(f"{late}:\n{tail}") from None

    def shut_down(self) -> None:
        """Ask dockerd to end, as the host's init does, and wait until it has."""
        process = self.engine.process()
        assert process is not None
        process.terminate()
        if wait_ended([process], 30):
            raise LabError("the lone dockerd does not end")

    def kill(self) -> None:
        """Kill dockerd with its containerd and shims, as a host that lacks memory may."""
        process = self.engine.process()
        assert process is not None
        family = [process, *process.children(recursive=True), *self.engine.shims()]
        end(family)
        # While nothing has reaped the killed ones, the next dockerd takes them for running.
        for file in ("dockerd.pid", "exec/containerd/containerd.pid"):
            (self.engine.folder / file).unlink(missing_ok=True)


@contextmanager
def lone_engine(
    shared: Engine, image: str, say: Say = print, *options: str
) -> Iterator[LoneEngine]:
    """Give a dockerd that runs with live restore and has one of the shared engine's images."""
    folder = root() / "lone"
    with exclusive(folder / "user.lock", say, "another run's lone dockerd", PATIENCE) as lock:
        stop(Engine(folder))  # what a killed run left behind
        with new_bridge() as bridge:
            lone = LoneEngine(lock, bridge, options)
            try:
                lone.start(live_restore=True)
                lone.engine.remove_containers()
                if images.built_hash(lone.engine, image) != images.built_hash(shared, image):
                    images.copy(shared, image, "docker", "-H", lone.engine.url, "load")
                yield lone
            finally:
                stop(lone.engine)
