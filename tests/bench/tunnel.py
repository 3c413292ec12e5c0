"""Our forward against `ssh -L`: same server, same run, medians, as ratios.

`python -m tests.bench.tunnel` prints the tables of docs/bench-tunnel.md; `--quick` takes half a
minute and says less. Needs root, because it starts an sshd of its own.

`ssh` has its own default cipher, as people have it; `--cipher` gives it another one.
"""

from __future__ import annotations

import argparse
import os
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.bench import tunnel_table
from tests.bench.tunnel_cores import apart
from tests.bench.tunnel_measures import (
    Spent,
    connections,
    down,
    kept,
    percentile,
    trips,
    trips_beside_a_download,
    up,
)
from tests.bench.tunnel_parts import FAR
from tests.lab.ports import free_port
from tests.lab.sshd import SSHServer, make_key

_ME = "tests.bench.tunnel"
DELAY = 0.025
RATE = 125e6
WAYS = ("ssh", "jlr")


@dataclass(frozen=True)
class Amounts:
    """How much one round measures; trips go in bursts, because the machine's load changes."""

    rounds: int
    near_blocks: int
    far_blocks: int
    bursts: int
    burst: int
    far_trips: int
    connections: int
    requests: int


FULL = Amounts(5, 300, 96, 10, 300, 20, 600, 120_000)
QUICK = Amounts(3, 100, 32, 3, 200, 8, 200, 36_000)


@contextmanager
def part(role: str, *arguments: object) -> Iterator[list[int]]:
    """Run a part of the benchmark and give its ports."""
    with process_of(role, *arguments) as (_, ports):
        yield ports


@contextmanager
def process_of(role: str, *arguments: object) -> Iterator[tuple[int, list[int]]]:
    """Run a part of the benchmark and give its process and its ports."""
    argv = [sys.executable, "-m", "tests.bench.tunnel_parts", role, *map(str, arguments)]
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        yield process.pid, [int(port) for port in process.stdout.readline().split()]
        process.stdin.close()


@contextmanager
def ssh_forward(
    sshd: SSHServer, port: int, key: Path, target: int, cipher: str | None = None
) -> Iterator[tuple[int, list[int]]]:
    """Run `ssh -L` and give its process and its port."""
    local = free_port()
    known = sshd.folder / "known_hosts"
    known.write_text(sshd.known_hosts(f"[127.0.0.1]:{port}"))
    options = [f"UserKnownHostsFile={known}", "ExitOnForwardFailure=yes", "IdentitiesOnly=yes"]
    argv = ["ssh", "-F", "none", "-N", "-i", str(key), "-p", str(port)]
    argv += ["-c", cipher] if cipher else []
    argv += [word for option in options for word in ("-o", option)]
    argv += ["-L", f"127.0.0.1:{local}:{FAR}:{target}", "root@127.0.0.1"]
    process = subprocess.Popen(argv)
    try:
        await_listener(local)
        yield process.pid, [local]
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


@dataclass(frozen=True)
class Way:
    """A forward's process, and its ports; `jlr` has two of them near, on one connection."""

    process: int
    ports: list[int]


@dataclass(frozen=True)
class Bench:
    """All four forwards, by way, and the processes of the host."""

    near: dict[str, Way]
    far: dict[str, Way]
    host: list[int]


@contextmanager
def bench(cipher: str | None) -> Iterator[Bench]:
    """Put all parts together."""
    with ExitStack() as stack, tempfile.TemporaryDirectory() as folder:
        key = make_key(Path(folder) / "key")
        options = ("PermitRootLogin yes",)
        sshd = stack.enter_context(SSHServer(key.with_suffix(".pub"), options=options))
        server, (target,) = stack.enter_context(process_of("far"))
        line = stack.enter_context(part("line", sshd.port, DELAY, RATE))[0]

        def ways(port: int) -> dict[str, Way]:
            ssh = stack.enter_context(ssh_forward(sshd, port, key, target, cipher))
            jlr = stack.enter_context(process_of("ours", port, key, target, 2))
            return {"ssh": Way(*ssh), "jlr": Way(*jlr)}

        near, far = ways(sshd.port), ways(line)
        yield Bench(near, far, [server, *(session.pid for session in sshd.sessions())])


Samples = dict[tuple[str, str], list[float]]
Measure = Callable[[int], float]


def in_turn(number: int) -> tuple[str, ...]:
    """Return the ways in this round's order."""
    return WAYS if number % 2 else WAYS[::-1]


def measure(ports: Bench, amounts: Amounts) -> Samples:
    """Return all samples by way and measure; the ways take turns."""
    samples: Samples = defaultdict(list)
    near: dict[str, Measure] = {
        "down, MB/s": lambda port: down(port, amounts.near_blocks),
        "up, MB/s": lambda port: up(port, amounts.near_blocks),
        "new connections, a second": lambda port: connections(port, amounts.connections),
    }
    far: dict[str, Measure] = {
        "50 ms down, MB/s": lambda port: down(port, amounts.far_blocks),
        "50 ms up, MB/s": lambda port: up(port, amounts.far_blocks),
        "50 ms trip p50, ms": lambda port: percentile(trips(port, amounts.far_trips), 50),
    }
    for number in range(amounts.rounds):
        print(f"round {number + 1} of {amounts.rounds}", file=sys.stderr)
        for ways, measures in ((ports.near, near), (ports.far, far)):
            for name, one in measures.items():
                for way in in_turn(number):
                    samples[way, name].append(one(ways[way].ports[0]))
        measure_trips(ports.near, amounts, number, samples)
        measure_kept(ports.near, amounts, number, tunnel_table.KEPT, samples)
        with apart((os.getpid(), *(way.process for way in ports.near.values())), ports.host):
            measure_kept(ports.near, amounts, number, tunnel_table.KEPT_APART, samples)
        measure_beside(ports.near, amounts, number, samples)
    return samples


def measure_trips(ways: dict[str, Way], amounts: Amounts, number: int, samples: Samples) -> None:
    """Measure how long a small message takes, and what it costs the process on its way."""
    took: dict[str, list[float]] = defaultdict(list)
    cpu: dict[str, float] = defaultdict(float)
    sleeps: dict[str, int] = defaultdict(int)
    for burst in range(amounts.bursts):
        for way in in_turn(number + burst):
            before = Spent.by(ways[way].process)
            took[way] += trips(ways[way].ports[0], amounts.burst)
            after = Spent.by(ways[way].process)
            cpu[way] += after.cpu - before.cpu
            sleeps[way] += after.sleeps - before.sleeps
    for way in WAYS:
        samples[way, "trip p50, ms"].append(percentile(took[way], 50))
        samples[way, "trip p99, ms"].append(percentile(took[way], 99))
        samples[way, "CPU time, µs"].append(cpu[way] / len(took[way]))
        samples[way, "sleeps"].append(sleeps[way] / len(took[way]))


def measure_kept(
    ways: dict[str, Way], amounts: Amounts, number: int, names: tuple[str, str], samples: Samples
) -> None:
    """Measure requests on kept connections, and what one costs the process on its way."""
    rates: dict[str, list[float]] = defaultdict(list)
    cpu: dict[str, float] = defaultdict(float)
    burst = amounts.requests // amounts.bursts
    for turn in range(amounts.bursts):
        for way in in_turn(number + turn):
            before = Spent.by(ways[way].process)
            rates[way].append(kept(ways[way].ports[0], burst))
            cpu[way] += Spent.by(ways[way].process).cpu - before.cpu
    rate, cost = names
    for way in WAYS:
        samples[way, rate].append(statistics.median(rates[way]))
        samples[way, cost].append(cpu[way] / (burst * amounts.bursts))


def measure_beside(ways: dict[str, Way], amounts: Amounts, number: int, samples: Samples) -> None:
    """Measure small messages alone and beside a download, each in its own forward if it can."""
    count = amounts.bursts * amounts.burst
    for way in in_turn(number):
        bulk, small = ways[way].ports[0], ways[way].ports[-1]
        alone = trips(small, count)
        beside = trips_beside_a_download(bulk, small, count)
        for hundredths in (50, 99):
            name = f"p{hundredths}, ms"
            samples[way, f"alone {name}"].append(percentile(alone, hundredths))
            samples[way, f"beside {name}"].append(percentile(beside.took, hundredths))
        samples[way, tunnel_table.CROWDED_DOWN].append(beside.speed)


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
    parser.add_argument("--cipher", help="what `ssh` uses; its own default if not given")
    parser.add_argument("--inside", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if not arguments.inside:
        return in_own_network()
    load = os.getloadavg()[0]
    with bench(arguments.cipher) as ports:
        samples = measure(ports, QUICK if arguments.quick else FULL)
    cipher = arguments.cipher or "its default cipher"
    print(
        f"{tunnel_table.machine()}; load {load:.1f} before and {os.getloadavg()[0]:.1f} after;"
        f" `ssh` with {cipher}.\n\n{tunnel_table.against_ssh(samples)}\n\n"
        f"{tunnel_table.costs(samples)}\n\n{tunnel_table.crowded(samples)}"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
