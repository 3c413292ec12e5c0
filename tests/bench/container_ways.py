"""The two ways into a container: `python -m tests.bench.container_ways [ROUNDS]` (as root).

By its own address, where it is alone on its network, and by a relay through the engine's `exec`.
Two sessions of one host run the same server, and each is measured by `jlr forward`, in turn. It
prints a table of docs/bench-tunnel.md.
"""

from __future__ import annotations

import json
import os
import secrets
import statistics
import sys
from collections import defaultdict
from collections.abc import Callable

from tests.bench.tunnel_measures import connections, down, kept, percentile, trips, up
from tests.bench.tunnel_table import machine
from tests.lab import images
from tests.lab.accounts import claimed_account
from tests.lab.containers import ContainerFactory
from tests.lab.engine import running_engine
from tests.lab.laptop import Laptop
from tests.lab.programs import wait_until
from tests.lab.remote_host import new_keys, new_laptop, running_sshd

IMAGE = "lab/jupyter"
ROUNDS = 5
PORT = 7007
WAYS = {"by its address": (), "by a relay": ("--network", "bridge")}
MEASURES: dict[str, Callable[[int], float]] = {
    "down, MB/s": lambda port: down(port, 200),
    "up, MB/s": lambda port: up(port, 200),
    "trip p50, ms": lambda port: percentile(trips(port, 1000), 50),
    "trip p99, ms": lambda port: percentile(trips(port, 1000), 99),
    "new connections, a second": lambda port: connections(port, 300),
    "requests on 100 kept connections, a second": lambda port: kept(port, 20_000),
}
# As `tunnel_parts` serves it.
SERVER = f"""
import socket, threading
BLOCK = bytes(1 << 20)
def answer(sock):
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    wish = sock.recv(1)
    if wish == b"d":
        for _ in range(int.from_bytes(sock.recv(4, socket.MSG_WAITALL), "big")):
            sock.sendall(BLOCK)
    elif wish == b"u":
        count = 0
        while got := sock.recv(1 << 20):
            count += len(got)
        sock.sendall(count.to_bytes(8, "big"))
    else:
        while got := sock.recv(65536):
            sock.sendall(got)
    sock.close()
listener = socket.create_server(("0.0.0.0", {PORT}), backlog=1024)
while True:
    threading.Thread(target=answer, args=(listener.accept()[0],), daemon=True).start()
"""


def forwarded(laptop: Laptop, containers: ContainerFactory, options: tuple[str, ...]) -> int:
    """Start a session with the server in it, and return the local port of the server's forward."""
    name = containers.name()
    begun = laptop.jlr("start", "lab", name, "--image", IMAGE, "--no-browser", *options)
    assert begun.status == 0, begun
    containers.engine.docker("exec", "--detach", name, "python3", "-c", SERVER)

    def port() -> dict[str, object]:
        return dict(json.loads(laptop.jlr("forward", name, str(PORT), "--json").stdout)[0])

    wait_until(lambda: port()["state"] == "up", "the server")
    return int(str(port()["local_port"]))


def measured(ports: dict[str, int], rounds: int) -> dict[tuple[str, str], list[float]]:
    """Return the numbers of each way and measure; the ways take turns."""
    samples: dict[tuple[str, str], list[float]] = defaultdict(list)
    for number in range(rounds):
        print(f"round {number + 1} of {rounds}", file=sys.stderr)
        for name, measure in MEASURES.items():
            for way in list(ports)[:: 1 if number % 2 else -1]:
                samples[way, name].append(measure(ports[way]))
    return samples


def main() -> int:
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else ROUNDS
    load = os.getloadavg()[0]
    with (
        running_engine() as engine,
        claimed_account() as account,
        new_keys() as keys,
        running_sshd(engine, keys) as server,
        new_laptop(server, account, keys) as laptop,
    ):
        images.ensure(engine, print, (*images.NAMES[:2], IMAGE))
        containers = ContainerFactory(engine, f"bench-{secrets.token_hex(3)}-")
        try:
            ports = {way: forwarded(laptop, containers, with_) for way, with_ in WAYS.items()}
            samples = measured(ports, rounds)
        finally:
            containers.remove_all()
    print(f"{machine()}; load {load:.1f} before and {os.getloadavg()[0]:.1f} after.\n")
    print(f"| a container, medians of {rounds} | {' | '.join(WAYS)} | ratio |\n|---|---|---|---|")
    for name in MEASURES:
        address, relay = (statistics.median(samples[way, name]) for way in WAYS)
        print(f"| {name} | {address:.4g} | {relay:.4g} | {relay / address:.2f} |")
    return 0


if __name__ == "__main__":
    sys.exit(main())
