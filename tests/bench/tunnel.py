"""Our forward against `ssh -L`: same server, same run, medians, as ratios.

`python -m tests.bench.tunnel` prints the table of docs/bench-tunnel.md; `--quick` takes half a
minute and says less. Needs root, because it starts an sshd of its own.
"""

from __future__ import annotations

import argparse
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from tests.bench.tunnel_parts import BLOCK
from tests.lab.sshd import SSHServer, free_port, make_key

_ME = "tests.bench.tunnel"
DELAY = 0.025
RATE = 125e6


@dataclass(frozen=True)
class Amounts:
    """How much one round measures."""

    rounds: int
    near_blocks: int
    far_blocks: int
    near_trips: int
    far_trips: int
    connections: int


FULL = Amounts(5, 300, 64, 3000, 20, 600)
QUICK = Amounts(3, 100, 32, 500, 8, 200)

# Target, and whether more is better.
TARGETS = {
    "down": (1.0, True),
    "up": (0.9, True),
    "trip p50": (1.15, False),
    "trip p99": (1.5, False),
    "new connections": (0.6, True),
    "50 ms down": (2.5, True),
    "50 ms up": (1.0, True),
    "50 ms trip p50": (1.15, False),
}


@contextmanager
def part(role: str, *arguments: object) -> Iterator[list[int]]:
    """Run a part of the benchmark and give its ports."""
    argv = [sys.executable, "-m", "tests.bench.tunnel_parts", role, *map(str, arguments)]
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        yield [int(port) for port in process.stdout.readline().split()]
        process.stdin.close()


@contextmanager
def ssh_forward(sshd: SSHServer, port: int, key: Path, target: int) -> Iterator[int]:
    """Run `ssh -L` and give its local port."""
    local = free_port()
    known = sshd.folder / "known_hosts"
    known.write_text(sshd.known_hosts(f"[127.0.0.1]:{port}"))
    options = [f"UserKnownHostsFile={known}", "ExitOnForwardFailure=yes", "IdentitiesOnly=yes"]
    argv = ["ssh", "-F", "none", "-N", "-i", str(key), "-p", str(port)]
    argv += [word for option in options for word in ("-o", option)]
    argv += ["-L", f"127.0.0.1:{local}:127.0.0.1:{target}", "root@127.0.0.1"]
    process = subprocess.Popen(argv)
    try:
        await_listener(local)
        yield local
    finally:
        process.terminate()
        process.wait()


def await_listener(port: int) -> None:
    """Return once something listens on a local port."""
    limit = time.monotonic() + 10
    while True:
        try:
            socket.create_connection(("127.0.0.1", port)).close()
        except OSError:
            if time.monotonic() > limit:
                raise
            time.sleep(0.02)
        else:
            return


def connect(port: int) -> socket.socket:
    sock = socket.create_connection(("127.0.0.1", port))
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return sock


def down(port: int, blocks: int) -> float:
    """Return MB/s of a download."""
    buffer = bytearray(1 << 20)
    with connect(port) as sock:
        since = time.perf_counter()
        sock.sendall(b"d" + blocks.to_bytes(4, "big"))
        total = 0
        while got := sock.recv_into(buffer):
            total += got
    assert total == blocks * len(BLOCK)
    return total / (time.perf_counter() - since) / 1e6


def up(port: int, blocks: int) -> float:
    """Return MB/s of an upload, until the far end has all of it."""
    with connect(port) as sock:
        since = time.perf_counter()
        sock.sendall(b"u")
        for _ in range(blocks):
            sock.sendall(BLOCK)
        sock.shutdown(socket.SHUT_WR)
        count = int.from_bytes(sock.recv(8, socket.MSG_WAITALL), "big")
    assert count == blocks * len(BLOCK)
    return count / (time.perf_counter() - since) / 1e6


def trips(port: int, count: int) -> list[float]:
    """Return the milliseconds that small messages took to come back, in order of size."""
    took = []
    with connect(port) as sock:
        sock.sendall(b"e")
        for _ in range(count):
            since = time.perf_counter()
            sock.sendall(b"x" * 100)
            sock.recv(100, socket.MSG_WAITALL)
            took.append((time.perf_counter() - since) * 1e3)
    return sorted(took)


def connections(port: int, count: int) -> float:
    """Return how many connections a second are made, used and closed, one after the other."""
    since = time.perf_counter()
    for _ in range(count):
        with connect(port) as sock:
            sock.sendall(b"ex")
            sock.recv(1)
    return count / (time.perf_counter() - since)


Measure = Callable[[int], dict[str, float]]


def trip(port: int, count: int) -> dict[str, float]:
    """Return the p50 and p99 of small messages' round trips."""
    took = trips(port, count)
    return {"trip p50": took[len(took) // 2], "trip p99": took[len(took) * 99 // 100]}


def near_measures(amounts: Amounts) -> list[Measure]:
    return [
        lambda port: {"down": down(port, amounts.near_blocks)},
        lambda port: {"up": up(port, amounts.near_blocks)},
        lambda port: trip(port, amounts.near_trips),
        lambda port: {"new connections": connections(port, amounts.connections)},
    ]


def far_measures(amounts: Amounts) -> list[Measure]:
    return [
        lambda port: {"50 ms down": down(port, amounts.far_blocks)},
        lambda port: {"50 ms up": up(port, amounts.far_blocks)},
        lambda port: {"50 ms trip p50": trip(port, amounts.far_trips)["trip p50"]},
    ]


def crowded_trip(bulk: int, small: int, trips_count: int) -> tuple[float, float]:
    """Return a small message's p50 alone, and while another forward downloads without end."""
    alone = trips(small, trips_count)
    with connect(bulk) as sock:
        sock.sendall(b"d" + (1 << 20).to_bytes(4, "big"))
        reader = threading.Thread(target=_read_until_closed, args=(sock,))
        reader.start()
        time.sleep(0.3)
        crowded = trips(small, trips_count)
        sock.shutdown(socket.SHUT_RDWR)
        reader.join()
    return alone[len(alone) // 2], crowded[len(crowded) // 2]


def _read_until_closed(sock: socket.socket) -> None:
    buffer = bytearray(1 << 20)
    with suppress(ConnectionResetError):
        while sock.recv_into(buffer):
            pass


@dataclass(frozen=True)
class Bench:
    """The ports of both ways, near and far; `ours` has two forwards on one connection."""

    ssh_near: int
    ssh_far: int
    ours_near: list[int]
    ours_far: list[int]


@contextmanager
def bench() -> Iterator[Bench]:
    """Put all parts together."""
    with ExitStack() as stack, tempfile.TemporaryDirectory() as folder:
        key = make_key(Path(folder) / "key")
        sshd = SSHServer(key.with_suffix(".pub"), options=("PermitRootLogin yes",))
        stack.callback(sshd.remove)
        sshd.start()
        target = stack.enter_context(part("far"))[0]
        line = stack.enter_context(part("line", sshd.port, DELAY, RATE))[0]
        yield Bench(
            stack.enter_context(ssh_forward(sshd, sshd.port, key, target)),
            stack.enter_context(ssh_forward(sshd, line, key, target)),
            stack.enter_context(part("ours", sshd.port, key, target, 2)),
            stack.enter_context(part("ours", line, key, target, 1)),
        )


Samples = dict[tuple[str, str], list[float]]


def measure(ports: Bench, amounts: Amounts) -> Samples:
    """Return all samples by way and measure; the ways take turns."""
    samples: Samples = defaultdict(list)
    near = {"ssh": ports.ssh_near, "jlr": ports.ours_near[0]}
    far = {"ssh": ports.ssh_far, "jlr": ports.ours_far[0]}
    plan = [(near, measure) for measure in near_measures(amounts)]
    plan += [(far, measure) for measure in far_measures(amounts)]
    for number in range(amounts.rounds):
        print(f"round {number + 1} of {amounts.rounds}", file=sys.stderr)
        for where, one in plan:
            for way in ("ssh", "jlr") if number % 2 else ("jlr", "ssh"):
                for name, value in one(where[way]).items():
                    samples[way, name].append(value)
        for way, bulk, small in (
            ("ssh", ports.ssh_near, ports.ssh_near),
            ("jlr", ports.ours_near[0], ports.ours_near[1]),
        ):
            alone, beside = crowded_trip(bulk, small, amounts.near_trips)
            samples[way, "alone"].append(alone)
            samples[way, "beside"].append(beside)
    return samples


def table(samples: Samples) -> str:
    """Return the Markdown table."""
    lines = ["| | `ssh -L` | `jlr` | ratio | wanted |", "|---|---|---|---|---|"]
    for name, (wanted, more) in TARGETS.items():
        ssh = statistics.median(samples["ssh", name])
        jlr = statistics.median(samples["jlr", name])
        ratio = statistics.median(
            ours / theirs
            for ours, theirs in zip(samples["jlr", name], samples["ssh", name], strict=True)
        )
        met = ratio >= wanted if more else ratio <= wanted
        sign = "≥" if more else "≤"
        unit = "ms" if "trip" in name else "a second" if "new" in name else "MB/s"
        row = f"| {name}, {unit} | {ssh:.4g} | {jlr:.4g} | {ratio:.2f} | {sign} {wanted} "
        lines.append(row + ("|" if met else "(missed) |"))
    lines += [
        "",
        "| beside another session's download | alone | beside | ratio |",
        "|---|---|---|---|",
    ]
    for way in ("ssh", "jlr"):
        alone = statistics.median(samples[way, "alone"])
        beside = statistics.median(samples[way, "beside"])
        lines.append(
            f"| trip p50 with {way}, ms | {alone:.3g} | {beside:.3g} | {beside / alone:.1f} |"
        )
    return "\n".join(lines)


def in_own_network() -> int:
    """Run this program again in a network of its own, where Reno controls congestion.

    A machine whose choice is BBR paces even loopback, by what it saw while a window was full; that
    would measure BBR.
    """
    congestion = "/proc/sys/net/ipv4/tcp_congestion_control"
    script = f'ip link set lo up && echo reno >{congestion} && exec "$0" -m {_ME} --inside "$@"'
    argv = ["unshare", "--net", "sh", "-c", script, sys.executable, *sys.argv[1:]]
    return subprocess.run(argv, check=False).returncode


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--inside", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if not arguments.inside:
        return in_own_network()
    with bench() as ports:
        print(table(measure(ports, QUICK if arguments.quick else FULL)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
