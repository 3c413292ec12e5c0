"""Our forward against `ssh -L` on lines of different length: medians, as ratios.

`python -m tests.bench.tunnel [ROUNDS [MILLISECONDS …]]` prints the table of docs/speed.md:
for loopback (0) and round trips of 1, 20 and 100 ms if none are named. Needs root, because it
starts an sshd of its own. The ways take turns; each number is a median, each ratio the median of
the rounds'. The exit code is 1 if a goal was missed.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

from tests.bench.tunnel_parts import FAR, down, new_connections, trip, up
from tests.lab.ports import free_port, listens
from tests.lab.programs import wait_until
from tests.lab.sshd import SSHServer, make_key

_ME = "tests.bench.tunnel"
ROUNDS = 5
ROUND_TRIPS = (0, 1, 20, 100)  # milliseconds
DELAY = 0.025  # seconds each way, for other benchmarks
RATE = 125e6  # bytes a second of a line, 1 Gb/s
BLOCKS = {0: 300, 1: 100, 20: 64, 100: 32}  # MiB that a round moves each way
TRIPS = {0: 3000, 1: 1000, 20: 50, 100: 10}
CONNECTIONS = {0: 600, 1: 200, 20: 20, 100: 5}


@contextmanager
def part(role: str, *arguments: object) -> Iterator[list[int]]:
    """Run a part of the benchmark in a process of its own and give its ports."""
    argv = [sys.executable, "-m", "tests.bench.tunnel_parts", role, *map(str, arguments)]
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        yield [int(port) for port in process.stdout.readline().split()]
        process.stdin.close()


@contextmanager
def ssh_forward(sshd: SSHServer, port: int, key: Path, target: int) -> Iterator[int]:
    """Run `ssh -L` with its default settings and give its port."""
    local = free_port()
    known = sshd.folder / "known_hosts"
    known.write_text(sshd.known_hosts(f"[127.0.0.1]:{port}"))
    options = [f"UserKnownHostsFile={known}", "ExitOnForwardFailure=yes", "IdentitiesOnly=yes"]
    argv = ["ssh", "-F", "none", "-N", "-i", str(key), "-p", str(port)]
    argv += [word for option in options for word in ("-o", option)]
    argv += ["-L", f"127.0.0.1:{local}:{FAR}:{target}", "root@127.0.0.1"]
    with forwarding(argv, local):
        yield local


@contextmanager
def forwarding(
    argv: Sequence[str], port: int, environment: Mapping[str, str] | None = None
) -> Iterator[None]:
    """Run a program that forwards a local port, from its first listening."""
    process = subprocess.Popen(argv, env=environment)
    try:
        wait_until(lambda: listens(port), "the forward", timeout=10)
        yield
    finally:
        process.terminate()
        process.wait()


def root_sshd(key: Path) -> SSHServer:
    """Return a server that lets root in with a key."""
    return SSHServer(key.with_suffix(".pub"), options=("PermitRootLogin yes",))


@contextmanager
def ways(milliseconds: int) -> Iterator[dict[str, int]]:
    """Give the local port of each way over a line of that round trip."""
    with ExitStack() as stack, tempfile.TemporaryDirectory() as folder:
        key = make_key(Path(folder) / "key")
        sshd = stack.enter_context(root_sshd(key))
        (target,) = stack.enter_context(part("far"))
        port = sshd.port
        if milliseconds:
            (port,) = stack.enter_context(part("line", port, milliseconds / 2000, RATE))
        ssh = stack.enter_context(ssh_forward(sshd, port, key, target))
        (jlr,) = stack.enter_context(part("ours", port, key, target))
        yield {"ssh": ssh, "jlr": jlr}


Measure = Callable[[int], float]


def measures(milliseconds: int) -> tuple[tuple[str, Measure, float], ...]:
    """Return name, measure and wanted ratio; less is better of a round trip."""
    blocks, trips = BLOCKS[milliseconds], TRIPS[milliseconds]
    count = CONNECTIONS[milliseconds]
    return (
        ("down, MB/s", lambda port: down(port, blocks), 1.0),
        ("up, MB/s", lambda port: up(port, blocks), 1.0),
        ("round trip p50, ms", lambda port: trip(port, trips), 1.15 if milliseconds else 1.5),
        ("new connections, a second", lambda port: new_connections(port, count), 0.6),
    )


def rows(milliseconds: int, rounds: int) -> Iterator[tuple[str, bool]]:
    samples: dict[tuple[str, str], list[float]] = defaultdict(list)
    line = f"{milliseconds} ms" if milliseconds else "loopback"
    with ways(milliseconds) as ports:
        for number in range(rounds):
            for name, measure, _ in measures(milliseconds):
                for way in sorted(ports, reverse=bool(number % 2)):
                    samples[way, name].append(measure(ports[way]))
    for name, _, wanted in measures(milliseconds):
        ssh, jlr = samples["ssh", name], samples["jlr", name]
        ratio = statistics.median(ours / theirs for ours, theirs in zip(jlr, ssh, strict=True))
        less = name.startswith("round trip")
        met = ratio <= wanted if less else round(ratio, 2) >= wanted
        numbers = f"{statistics.median(ssh):.4g} | {statistics.median(jlr):.4g} | {ratio:.2f}"
        verdict = f"{'≤' if less else '≥'} {wanted}{'' if met else ' (missed)'}"
        yield f"| {line}: {name} | {numbers} | {verdict} |", met


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
    if sys.argv[1:2] != ["--inside"]:
        return in_own_network()
    rounds, *lines = map(int, sys.argv[2:] or [str(ROUNDS)])
    missed = False
    print("| | `ssh -L` | `jlr` | ratio | wanted |\n|---|---|---|---|---|")
    for milliseconds in lines or ROUND_TRIPS:
        for row, met in rows(milliseconds, rounds):
            print(row, flush=True)
            missed |= not met
    print(f"\n{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f} at the end")
    return int(missed)


if __name__ == "__main__":
    sys.exit(main())
