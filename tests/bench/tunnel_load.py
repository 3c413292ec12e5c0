"""A thousand connections through one forward, and what it costs when there are none.

`python -m tests.bench.tunnel_load` prints a table; needs root, because it starts its own sshd.
"""

from __future__ import annotations

import resource
import socket
import tempfile
import threading
import time
from contextlib import ExitStack
from pathlib import Path

import psutil

from tests.bench.tunnel import part
from tests.bench.tunnel_measures import connect
from tests.lab.sshd import SSHServer, make_key

CONNECTIONS = 1000
BUSY = 100
BUSY_SECONDS = 5.0
IDLE_SECONDS = 60.0
_SETTLE_SECONDS = 1.0


def wakeups(process: psutil.Process) -> int:
    """Return how often the process's threads went to sleep of their own accord so far."""
    return sum(
        int(line.split()[1])
        for status in Path(f"/proc/{process.pid}/task").glob("*/status")
        for line in status.read_text().splitlines()
        if line.startswith("voluntary_ctxt_switches")
    )


def keep_busy(sock: socket.socket, until: float, count: list[int]) -> None:
    """Send 10 KB and wait for it, again and again."""
    while time.monotonic() < until:
        sock.sendall(bytes(10_000))
        sock.recv(10_000, socket.MSG_WAITALL)
        count[0] += 1


def thousand(port: int) -> int:
    """Open all connections, keep some busy, and see that each is served; return the exchanges."""
    socks = [connect(port) for _ in range(CONNECTIONS)]
    for sock in socks:
        sock.sendall(b"e")
    count = [0]
    until = time.monotonic() + BUSY_SECONDS
    threads = [
        threading.Thread(target=keep_busy, args=(sock, until, count)) for sock in socks[:BUSY]
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for number, sock in enumerate(socks):
        sock.sendall(b"%06d" % number)
    for number, sock in enumerate(socks):
        assert sock.recv(6, socket.MSG_WAITALL) == b"%06d" % number
        sock.close()
    return count[0]


def main() -> None:
    most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    with ExitStack() as stack, tempfile.TemporaryDirectory() as folder:
        key = make_key(Path(folder) / "key")
        server = SSHServer(key.with_suffix(".pub"), options=("PermitRootLogin yes",))
        sshd = stack.enter_context(server)
        target = stack.enter_context(part("far"))[0]
        port = stack.enter_context(part("ours", sshd.port, key, target, 1))[0]
        (process,) = (child for child in psutil.Process().children() if "ours" in child.cmdline())
        print("| | measured | wanted |\n|---|---|---|", flush=True)
        print(f"| memory at rest, MB | {process.memory_info().rss / 1e6:.0f} | ≤ 60 |", flush=True)
        before, spent = wakeups(process), sum(process.cpu_times()[:2])
        time.sleep(IDLE_SECONDS)
        idle = wakeups(process) - before
        print(f"| wake-ups in {IDLE_SECONDS:.0f} idle seconds | {idle} | few |")
        print(f"| CPU seconds in them | {sum(process.cpu_times()[:2]) - spent:.2f} | 0 |")
        peak = [0]
        over = threading.Event()

        def watch() -> None:
            while not over.wait(0.05):
                peak[0] = max(peak[0], process.memory_info().rss)

        watcher = threading.Thread(target=watch)
        watcher.start()
        exchanges = thousand(port)
        over.set()
        watcher.join()
        load = f"{CONNECTIONS} connections, {BUSY} busy"
        print(f"| memory with {load}, MB | {peak[0] / 1e6:.0f} | ≤ 150 |")
        print(f"| exchanges of 10 KB a second then | {exchanges / BUSY_SECONDS:.0f} | |")
        time.sleep(_SETTLE_SECONDS)
        print(f"| threads after | {process.num_threads()} | |")
        print(f"| file descriptors after | {process.num_fds()} | |")
        print(f"| memory after, MB | {process.memory_info().rss / 1e6:.0f} | |")


if __name__ == "__main__":
    main()
