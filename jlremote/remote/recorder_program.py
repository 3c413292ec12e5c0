"""The program that records what the kernels of a Jupyter server publish, until that ends.

Its arguments are PID RUNTIME SESSION [BYTES]: the server's process, the folder with that server's
runtime file and connection files, the session's folder, and how much is kept. It runs with the
server's Python and the pyzmq that every Jupyter brings.

Messages wait in pyzmq's own thread while the program pauses, so it reads many at a time: that is
cheap, and a kernel is never held up by it.
"""
# ruff: noqa: T201 - it is a program; what it prints is its log

import json
import os
import re
import signal
import sys
import time
from contextlib import suppress
from typing import Any, Dict, List

from jlremote.remote import recorded_kernel as recorded
from jlremote.remote.record_store import SMALL_BYTES, Store, changed_at, kernel_of

MOST_BYTES = 200 << 20  # of a session
PAUSE_SECONDS = 0.1  # in which messages gather, and between two looks for new kernels
BEAT_SECONDS = 2  # between two signs of life
LONG_SECONDS = 1  # a cell that runs longer is named in `running`
LEAVING_SECONDS = 2
TRIES = 30  # looks after a change: a file may not be whole, or its kernel not known to be ours

CONNECTION = re.compile(r"kernel-(.+)\.json")


class Recorder:
    """The kernels of a server, and where their records go."""

    def __init__(self, server: recorded.RecordedServer, session: str, most: int) -> None:
        import zmq

        folder = os.path.join(session, "output")
        self.server = server
        self.state = os.path.join(session, "recorder")
        self.running = os.path.join(folder, "running")
        self.store = Store(folder, most)
        self.poller: Any = zmq.Poller()
        cells = recorded.Cells(os.path.join(folder, "cells"))
        self.around = recorded.Surroundings(zmq.Context(), self.poller, server, cells, self.store)
        self.kernels: Dict[str, recorded.RecordedKernel] = {}
        self.written = ""
        self.ended = False
        self.changed = 0.0  # when a file of the runtime folder came or went last
        self.tries = 0
        self.beat = 0.0

    def run(self) -> None:
        others = self.missed()
        self.find()
        if not others:
            self.tell_gone()
        self.store.write()
        while self.server.runs and not self.ended:
            self.poller.poll(PAUSE_SECONDS * 1000)
            self.turn()
            time.sleep(PAUSE_SECONDS)
        self.turn()
        for kernel in self.kernels.values():
            kernel.end()
        self.store.write()

    def turn(self) -> None:
        """Record what has come, and follow the kernels that begin and end."""
        now, changed = time.monotonic(), changed_at(self.server.runtime)
        if changed != self.changed:
            self.changed, self.tries = changed, TRIES
        alive = now - self.beat > BEAT_SECONDS
        if self.tries or alive:
            self.tries = max(0, self.tries - 1)
            self.find()
        for kernel in list(self.kernels.values()):
            while kernel.read() == recorded.BATCH:
                self.store.write()
            if kernel.gone and time.monotonic() > kernel.gone:
                kernel.end()
                del self.kernels[kernel.id]
        self.store.write()
        self.tell_running()
        if alive:
            self.beat = now
            try:
                os.utime(self.state)
            except OSError:  # the session's folder was removed
                self.ended = self.ended or not os.path.isdir(self.store.folder)

    def find(self) -> None:
        """Subscribe to kernels that are new, and leave those that are gone."""
        connections = {}
        for name in os.listdir(self.server.runtime) if os.path.isdir(self.server.runtime) else ():
            named = CONNECTION.fullmatch(name)
            if named:
                connection = recorded.read_connection(os.path.join(self.server.runtime, name))
                if connection is not None:
                    connections[named[1]] = connection
        for kernel in self.kernels.values():
            if kernel.id not in connections and kernel.gone is None:
                kernel.gone = time.monotonic() + LEAVING_SECONDS
        for ident, connection in connections.items():
            known = self.kernels.get(ident)
            if known is None and self.is_ours(ident):
                self.kernels[ident] = recorded.RecordedKernel(ident, self.around, connection)
                self.server.ask(again=True)
            elif known is None and self.tries:
                self.server.ask(again=True)
            elif known is not None and known.connection != connection:  # it has other ports by now
                known.read()
                known.close()
                known.connection, known.gone = connection, None
                known.open()

    def is_ours(self, ident: str) -> bool:
        """Return whether a connection file is one of the server's: folders may be shared."""
        if self.server.runtime == os.path.join(os.path.dirname(self.state), "runtime"):
            return True
        if self.server.refuses:  # then that of another server of the same user may be taken
            file = os.path.join(self.server.runtime, f"kernel-{ident}.json")
            return changed_at(file) >= self.server.since
        return ident in (self.server.kernels or ())

    def missed(self) -> bool:
        """Record for each kernel that runs from when to when no recorder listened.

        Return whether another server may have kernels that were recorded.
        """
        now = time.time()
        try:
            with open(self.state) as file:
                before = file.read().split()
            last = os.path.getmtime(self.state) if before[2:3] == [str(self.server.pid)] else None
        except OSError:
            before, last = [], None
        own, server = os.getpid(), self.server
        words = own, recorded.process_start(own), server.pid, server.start
        write_whole(self.state, " ".join(map(str, words)) + "\n")
        if last is not None or now - self.server.since > recorded.START_SECONDS:
            why = "recording began" if last is None else "the recorder did not run"
            self.server.learn()
            for ident in self.server.kernels or ():
                self.store.lose(ident, last, now, why)
        pid, start = before[2:4] if len(before) == 4 else ("0", "")
        return pid != str(server.pid) and bool(start) and recorded.process_start(int(pid)) == start

    def tell_gone(self) -> None:
        """Record that kernels which the server does not have any more are gone."""
        if not self.is_ours(""):  # it tells which ones are
            self.server.learn()
            if self.server.kernels is None:
                return
        known = {*self.kernels, *(self.server.kernels or ())}
        for path in self.store.pieces():
            kernel = kernel_of(path)
            if path == self.store.path(kernel) and kernel not in known and not told_its_end(path):
                at = changed_at(path) + 0.1  # whose clock is coarse
                about = {"time": at, "kernel": kernel, "kind": "kernel"}
                self.store.add(dict(about, content={"state": "gone"}))

    def tell_running(self) -> None:
        """Write which cells have been running for a while, and since when."""
        now, cells = time.time(), {}
        for kernel in self.kernels.values():
            if kernel.busy and now - kernel.busy[1] >= LONG_SECONDS:
                notebook = self.server.notebooks.get(kernel.id)
                cells[kernel.id] = {"notebook": notebook, "since": kernel.busy[1]}
        text = json.dumps(cells) if cells else ""
        if text != self.written:
            self.written = text
            try:
                write_whole(self.running, text)
            except OSError as failure:
                print("cannot tell what runs:", failure, file=sys.stderr, flush=True)


def told_its_end(path: str) -> bool:
    """Return whether the last record of a kernel says that it ended."""
    with open(path, "rb") as file:
        file.seek(max(0, os.path.getsize(path) - SMALL_BYTES))
        return b'"kind":"kernel"' in file.read().rstrip().rpartition(b"\n")[2]


def write_whole(path: str, text: str) -> None:
    """Write a small file as a whole."""
    part = f"{path}.{os.getpid()}"
    with open(part, "w") as file:
        file.write(text)
    os.replace(part, path)


def alone(folder: str, pid: int) -> bool:
    """Take the lock of a server's recorder; return `False` if another recorder has it."""
    import fcntl  # Windows has none

    held = os.open(f"{folder}/lock-{pid}", os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:  # a file system without locks
        pass
    return True


def main(arguments: List[str]) -> int:
    """Record the kernels of the server that the arguments name."""
    pid, runtime, session = int(arguments[0]), arguments[1], arguments[2]
    most = int(arguments[3]) if arguments[3:] else MOST_BYTES
    os.umask(0o077)
    server = recorded.RecordedServer(pid, runtime)
    if not server.await_start():
        return 0
    folder = os.path.join(session, "output")
    if not os.path.isdir(folder):
        os.mkdir(folder)
    if not alone(folder, pid):
        return 0
    root = server.facts.get("root_dir") or server.facts.get("notebook_dir") or ""
    write_whole(os.path.join(folder, "root"), root)
    recorder = Recorder(server, session, most)

    def end(*_: Any) -> None:
        recorder.ended = True

    signal.signal(signal.SIGTERM, end)
    for ignored in (signal.SIGINT, signal.SIGHUP):
        signal.signal(ignored, signal.SIG_IGN)
    recorder.run()
    for left in (recorder.state, recorder.running, f"{folder}/lock-{pid}"):
        with suppress(OSError):
            os.unlink(left)
    return 0
