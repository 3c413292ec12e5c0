"""ssh clients of a session, and `jlr cp`: `python -m tests.bench.clients [ROUNDS] [MEGABYTES]`.

Each against the same client of the container's own sshd, which is asked at its own address, and of
the host's. All connections are open. The ways take turns, and the medians of the times are
compared. Exit code 1 says that a target was missed.
"""

from __future__ import annotations

import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.bench.start import Bench, bench
from tests.bench.streams import medians
from tests.lab.sshd import make_key

ROUNDS = 3
MEGABYTES = 200
FILES = 5000
TRIPS = 300
PATIENCE = 600.0


@dataclass(frozen=True)
class Way:
    """One side of a contest: a command line, and the file that its stdin is, if any."""

    argv: tuple[str, ...]
    given: Path | None = None


@dataclass(frozen=True)
class Row:
    """What both sides move, in MB or files, and the least ratio of their rates."""

    title: str
    amount: float
    ours: Way
    theirs: Way
    target: float | None
    begins_anew: bool = False  # whether the copies there are removed first


class Clients:
    """A container with its own sshd, noise on both sides, and open connections."""

    def __init__(self, parts: Bench, folder: Path, megabytes: int, stack: ExitStack) -> None:
        self._environment = parts.laptop.environment
        self._folder = folder
        self._megabytes = megabytes
        self._inside = parts.container
        self._name = parts.session
        self._config = folder / "config"
        key = make_key(folder / "key")
        begin = 'mkdir -p -m 700 ~/.ssh; echo "$1" >~/.ssh/authorized_keys; ssh-keygen -A'
        public = key.with_suffix(".pub").read_text(encoding="utf-8")
        self._inside.execute("sh", "-c", f"{begin} && /usr/sbin/sshd", "sh", public)
        block = parts.laptop.jlr("ssh-config").stdout
        own = f"Host own\n HostName {self._inside.address}\n User root\n IdentityFile {key}\n"
        open_ = f"Host *\n ControlPath {parts.laptop.folder}/%C\n"
        strange = " StrictHostKeyChecking no\n UserKnownHostsFile /dev/null\n LogLevel ERROR\n"
        theirs = parts.laptop.ssh_config.read_text(encoding="utf-8")
        self._config.write_text(f"{block}{own}{strange}{theirs}{open_}", encoding="utf-8")
        for host in (f"{self._name}.jlr", "lab.jlr", "own", "lab"):
            self._seconds(Way((*self._ssh, "-fNM", host)))
            stack.callback(self._seconds, Way((*self._ssh, "-O", "exit", host)))
        self._noise = folder / "noise"
        with self._noise.open("wb") as file:
            for _ in range(megabytes):
                file.write(os.urandom(1 << 20))
        for host in ("own", "lab"):
            self._seconds(Way((*self._ssh, host, "cat >/tmp/jlr-bench"), self._noise))
            stack.callback(self._seconds, Way((*self._ssh, host, "rm -rf /tmp/jlr-bench*")))
        self._small = folder / "small"
        for number in range(FILES):
            path = self._small / str(number % 50) / str(number)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(os.urandom(1000))

    @property
    def _ssh(self) -> tuple[str, ...]:
        return ("ssh", "-F", str(self._config))

    def rows(self) -> Iterator[Row]:
        """Give what is measured; a row without a target shows what bounds another one."""
        inside, there = f"{self._name}.jlr", "/tmp/jlr-bench"
        by_engine = (*self._ssh, "lab", "docker", "exec", "-i", self._name)
        down, up = ("cat", there), ("dd", "of=/dev/null", "bs=64k", "status=none")
        for title, ours, theirs, target in (
            ("`ssh dgx.jlr`, to `ssh dgx`", (*self._ssh, "lab.jlr"), (*self._ssh, "lab"), 0.7),
            ("`ssh cont1.jlr`, to its sshd", (*self._ssh, inside), (*self._ssh, "own"), 0.7),
            ("… to `ssh dgx docker exec`", (*self._ssh, inside), by_engine, None),
        ):
            size = self._megabytes
            yield Row(f"{title}: down", size, Way((*ours, *down)), Way((*theirs, *down)), target)
            noise = self._noise
            yield Row(
                f"{title}: up", size, Way((*ours, *up), noise), Way((*theirs, *up), noise), target
            )
        scp = ("scp", "-q", "-F", str(self._config))
        copy, file, here = f"{there}-copy", str(self._noise), str(self._folder / "copy")
        for title, place, other in (
            ("`jlr cp` with the host, to `scp`", "lab", "lab"),
            ("`jlr cp` with the container, to `scp` to its sshd", self._name, "own"),
        ):
            size = self._megabytes
            ours, theirs = ("jlr", "cp", f"{place}:{there}", here), (*scp, f"{other}:{there}", here)
            yield Row(f"{title}: down", size, Way(ours), Way(theirs), 0.9)
            ours, theirs = ("jlr", "cp", file, f"{place}:{copy}"), (*scp, file, f"{other}:{copy}")
            yield Row(f"{title}: up", size, Way(ours), Way(theirs), 0.9)
        small, rsync = str(self._small), ("rsync", "-a", "-e", " ".join(self._ssh))
        ours = ("jlr", "cp", "-r", small, f"{self._name}:{there}-small")
        theirs = (*rsync, f"{small}/", f"own:{there}-other")
        title = f"{FILES} files of 1 kB, to `rsync`"
        yield Row(f"{title}: up", FILES, Way(ours), Way(theirs), 1.0, begins_anew=True)
        ours = ("jlr", "cp", "-r", f"{self._name}:{there}-small", f"{here}-small")
        theirs = (*rsync, f"own:{there}-other/", f"{here}-other")
        yield Row(f"{title}: down", FILES, Way(ours), Way(theirs), 1.0)

    def measured(self, row: Row, rounds: int) -> tuple[float, float]:
        """Return the median seconds of both ways."""
        pairs = []
        for _ in range(rounds):
            self._clean(there=row.begins_anew)
            pairs.append((self._seconds(row.ours), self._seconds(row.theirs)))
        return medians(pairs)

    def _clean(self, *, there: bool) -> None:
        """Remove what the round before has copied; the next row may copy back what is there."""
        if there:
            self._seconds(Way((*self._ssh, "own", "rm -rf /tmp/jlr-bench-*")))
        for path in self._folder.glob("copy*"):
            shutil.rmtree(path) if path.is_dir() else path.unlink()

    def trips(self) -> tuple[float, float]:
        """Return the median milliseconds of one byte to a program there and back, both ways."""
        ours, theirs = (self._trip(host) for host in (f"{self._name}.jlr", "own"))
        return ours, theirs

    def _trip(self, host: str) -> float:
        argv = (*self._ssh, host, "cat")
        pipe = subprocess.PIPE
        with subprocess.Popen(argv, stdin=pipe, stdout=pipe, env=self._environment) as process:
            assert process.stdin is not None
            assert process.stdout is not None
            took = []
            for _ in range(TRIPS):
                began = time.perf_counter()
                os.write(process.stdin.fileno(), b"x")
                os.read(process.stdout.fileno(), 1)
                took.append(time.perf_counter() - began)
            process.stdin.close()
        return 1000 * statistics.median(took)

    def _seconds(self, way: Way) -> float:
        with (way.given or Path(os.devnull)).open("rb") as source:
            began = time.perf_counter()
            subprocess.run(
                way.argv,
                env=self._environment,
                stdin=source,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                timeout=PATIENCE,
                check=True,
            )
            return time.perf_counter() - began


@contextmanager
def clients(megabytes: int) -> Iterator[Clients]:
    """Give everything that is needed, until the end of a `with` block."""
    with bench("lab/ssh") as parts, tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
        yield Clients(parts, Path(folder), megabytes, stack)


def main() -> int:
    """Print the table and return the exit status."""
    numbers = [int(word) for word in sys.argv[1:]]
    rounds, megabytes = (*numbers, *(ROUNDS, MEGABYTES)[len(numbers) :])
    missed = False
    print(f"| {megabytes} MB, or files; a second | jlr | the other | ratio | wanted |")
    print("|---|---|---|---|---|")
    with clients(megabytes) as parts:
        for row in parts.rows():
            ours, theirs = parts.measured(row, rounds)
            ratio = theirs / ours
            missed |= row.target is not None and ratio < row.target
            wanted = "" if row.target is None else f"≥ {row.target}"
            rates = f"{row.amount / ours:.0f} | {row.amount / theirs:.0f} | {ratio:.2f}"
            print(f"| {row.title} | {rates} | {wanted} |", flush=True)
        ours, theirs = parts.trips()
    print(f"\nRound trip of one byte: `ssh cont1.jlr` {ours:.2f} ms, its sshd {theirs:.2f} ms")
    return int(missed)


if __name__ == "__main__":
    sys.exit(main())
