"""Bytes through `jlr`'s commands: `python -m tests.bench.streams [ROUNDS [MILLISECONDS …]]`.

Each against what people do by hand with `ssh`, in turn within the same run, over loopback (0) and a
line of 20 ms round trip if none is named. Both have a connection that is open, and each time
includes the start of the command. It prints the table of docs/speed.md, and needs root. The
exit code is 1 if a goal was missed.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.bench.start import Bench, bench, run_to_its_end, timed

ROUNDS = 3
MEGABYTES = 100
TRIPS = 100
WANTED = 0.9
THERE = f"/tmp/jlr-bench-{os.getpid()}"


@dataclass(frozen=True)
class Row:
    """Two commands that move the same bytes, by jlr and by hand; `given` is their stdin."""

    title: str
    ours: tuple[str, ...]
    theirs: tuple[str, ...]
    given: Path = Path(os.devnull)


class Streams:
    """A container, noise on both sides, and open connections."""

    def __init__(self, parts: Bench, folder: Path) -> None:
        self.environment = parts.laptop.environment
        self.folder = folder
        self.session = parts.session
        self._config = folder / "config"
        theirs = parts.laptop.ssh_config.read_text(encoding="utf-8")
        block = parts.laptop.jlr("config", "ssh").stdout
        own = f"Host *\n ControlPath {parts.laptop.folder}/%C\n"
        self._config.write_text(f"{block}{theirs}{own}", encoding="utf-8")
        self.ssh = ("ssh", "-F", str(self._config))
        self.by_hand = (*self.ssh, "lab", "docker", "exec", "-i", self.session)
        self.noise = folder / "noise"
        self.noise.write_bytes(os.urandom(1 << 20) * MEGABYTES)

    @contextmanager
    def connected(self) -> Iterator[None]:
        """Open the connections, and put the noise on the host and into the container."""
        self.seconds((*self.ssh, "-fNM", "lab"))
        try:
            self.seconds((*self.ssh, f"{self.session}.jlr", "true"))
            for place in (self.by_hand, (*self.ssh, "lab")):
                self.seconds((*place, f"sh -c 'cat >{THERE}'"), self.noise)
            yield
        finally:
            self.seconds((*self.ssh, "lab", f"rm -rf {THERE}*"))
            self.seconds((*self.ssh, "-O", "exit", "lab"))

    def rows(self) -> Iterator[Row]:
        down, up = ("cat", THERE), ("dd", "of=/dev/null", "bs=64k", "status=none")
        for title, ours in (
            ("`jlr shell`", ("jlr", "shell", self.session, "--")),
            ("`ssh cont1.jlr`", (*self.ssh, f"{self.session}.jlr")),
        ):
            yield Row(f"{title}, down", (*ours, *down), (*self.by_hand, *down))
            yield Row(f"{title}, up", (*ours, *up), (*self.by_hand, *up), self.noise)
        for way, paths in (
            ("down", (f"lab:{THERE}", str(self.folder / "copy"))),
            ("up", (str(self.noise), f"lab:{THERE}-2")),
        ):
            scp = ("scp", "-qF", str(self._config), *paths)
            yield Row(f"`jlr cp`, to `scp`: {way}", ("jlr", "cp", *paths), scp)

    def seconds(self, argv: tuple[str, ...], given: Path = Path(os.devnull)) -> float:
        with given.open("rb") as source:
            return timed(lambda: run_to_its_end(argv, self.environment, source))

    def trips(self) -> Iterator[tuple[str, float, float]]:
        """Give the milliseconds of a byte to `cat` in the container and back, of both ways."""
        theirs = self._trip((*self.by_hand, "cat"))
        yield "`jlr shell`", self._trip(("jlr", "shell", self.session, "--", "cat")), theirs
        yield "`ssh cont1.jlr`", self._trip((*self.ssh, f"{self.session}.jlr", "cat")), theirs

    def _trip(self, argv: tuple[str, ...]) -> float:
        pipe, took = subprocess.PIPE, []
        with subprocess.Popen(argv, stdin=pipe, stdout=pipe, env=self.environment) as process:
            assert process.stdin is not None
            assert process.stdout is not None
            for _ in range(TRIPS):
                began = time.perf_counter()
                os.write(process.stdin.fileno(), b"x")
                os.read(process.stdout.fileno(), 1)
                took.append(1000 * (time.perf_counter() - began))
            process.stdin.close()
        return statistics.median(took)


@contextmanager
def open_streams(milliseconds: int) -> Iterator[tuple[Streams, str]]:
    """Give connections over a line of that round trip, and its name."""
    with bench(milliseconds) as parts, tempfile.TemporaryDirectory(dir="/dev/shm") as folder:
        streams = Streams(parts, Path(folder))
        with streams.connected():
            yield streams, f"{milliseconds} ms" if milliseconds else "loopback"


def measure(milliseconds: int, rounds: int) -> bool:
    """Print the rows of one line; return whether a goal was missed."""
    missed = False
    with open_streams(milliseconds) as (streams, line):
        for row in streams.rows():
            pairs = [
                (streams.seconds(row.ours, row.given), streams.seconds(row.theirs, row.given))
                for _ in range(rounds)
            ]
            ours, theirs = map(statistics.median, zip(*pairs, strict=True))
            missed |= theirs < WANTED * ours
            rates = f"{MEGABYTES / theirs:.0f} | {MEGABYTES / ours:.0f} | {theirs / ours:.2f}"
            print(f"| {line}: {row.title}, MB/s | {rates} | ≥ {WANTED} |", flush=True)
        for title, trip, other in streams.trips():
            numbers = f"{other:.2f} | {trip:.2f} | {trip / other:.2f}"
            print(f"| {line}: {title}, round trip p50, ms | {numbers} | |", flush=True)
    return missed


def run(measure: Callable[[int, int], bool], head: str) -> int:
    """Print a table of all lines that are wanted, and return the exit status."""
    rounds, *lines = map(int, sys.argv[1:] or [str(ROUNDS)])
    print(f"| {head} |\n|{'---|' * len(head.split('|'))}")
    missed = [measure(one, rounds) for one in lines or (0, 20)]
    return int(any(missed))


if __name__ == "__main__":
    sys.exit(run(measure, " | by hand | jlr | ratio | wanted"))
