"""ssh clients of a session, and `jlr cp`: `python -m tests.bench.clients [ROUNDS [MB [ROW]]]`.

Each against the same client of the container's own sshd, which is asked at its own address (as if
the laptop were the host) and by a jump over the host, and of the host's. All connections are open,
and all files are in memory: a disk takes its time for files that were deleted before. The ways take
turns, and the medians of the times are compared. `ROW` is a part of the title of what is measured
alone. Exit code 1 says that a target was missed.
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

from tests.bench.start import Bench, bench, run_to_its_end, timed
from tests.bench.streams import medians
from tests.lab.sshd import make_key

ROUNDS = 3
MEGABYTES = 200
FILES = 5000
SIZES = (1, 40)  # kB of each; 40 are a small picture
TRIPS = 300
PATIENCE = 600.0
MEMORY = "/dev/shm"
THERE = f"{MEMORY}/jlr-bench-{os.getpid()}"
TRIP = "Round trip of one byte"


@dataclass(frozen=True)
class Way:
    """One side of a contest: a command line, and the file that its stdin is, if any."""

    argv: tuple[str, ...]
    given: Path | None = None
    without_rsync: bool = False


@dataclass(frozen=True)
class Row:
    """What both sides move, in MB or files, and the least ratio of their rates."""

    title: str
    amount: float
    ours: Way
    theirs: Way
    target: float | None


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
        # `%C` would be that of `own`.
        jumped = f"{parts.laptop.folder}/jumped"
        own = f"Host jumped\n ProxyJump lab\n ControlPath {jumped}\n"
        own += f"Host own jumped\n HostName {self._inside.address}\n User root\n"
        own += f" IdentityFile {key}\n"
        open_ = f"Host *\n ControlPath {parts.laptop.folder}/%C\n"
        strange = " StrictHostKeyChecking no\n UserKnownHostsFile /dev/null\n LogLevel ERROR\n"
        theirs = parts.laptop.ssh_config.read_text(encoding="utf-8")
        self._config.write_text(f"{block}{own}{strange}{theirs}{open_}", encoding="utf-8")
        for host in (f"{self._name}.jlr", "lab.jlr"):
            self._seconds(Way((*self._ssh, host, "true")))  # the link listens for both from then on
        for host in ("own", "lab", "jumped"):
            self._seconds(Way((*self._ssh, "-fNM", host)))
            stack.callback(self._seconds, Way((*self._ssh, "-O", "exit", host)))
        self._noise = folder / "noise"
        with self._noise.open("wb") as file:
            for _ in range(megabytes):
                file.write(os.urandom(1 << 20))
        for host in ("own", "lab"):
            self._seconds(Way((*self._ssh, host, f"cat >{THERE}"), self._noise))
            stack.callback(self._seconds, Way((*self._ssh, host, f"rm -rf {THERE}*")))
        for size in SIZES:
            tree = folder / f"tree-{size}"
            for number in range(FILES):
                path = tree / str(number % 50) / str(number)
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(os.urandom(1000 * size))
            self._seconds(Way((*self._rsync(), f"{tree}/", f"own:{THERE}-{size}")))

    @property
    def _ssh(self) -> tuple[str, ...]:
        return ("ssh", "-F", str(self._config))

    def rows(self) -> Iterator[Row]:
        """Give what is measured; a row without a target shows what bounds another one."""
        inside = f"{self._name}.jlr"
        by_engine = (*self._ssh, "lab", "docker", "exec", "-i", self._name)
        down, up = ("cat", THERE), ("dd", "of=/dev/null", "bs=64k", "status=none")
        for title, ours, theirs, target in (
            ("`ssh dgx.jlr`, to `ssh dgx`", (*self._ssh, "lab.jlr"), (*self._ssh, "lab"), 0.7),
            ("`ssh cont1.jlr`, to its sshd", (*self._ssh, inside), (*self._ssh, "own"), 0.7),
            ("… to its sshd by a jump", (*self._ssh, inside), (*self._ssh, "jumped"), 0.7),
            ("… to `ssh dgx docker exec`", (*self._ssh, inside), by_engine, None),
        ):
            size = self._megabytes
            yield Row(f"{title}: down", size, Way((*ours, *down)), Way((*theirs, *down)), target)
            noise = self._noise
            yield Row(
                f"{title}: up", size, Way((*ours, *up), noise), Way((*theirs, *up), noise), target
            )
        scp = ("scp", "-q", "-F", str(self._config))
        copy, file, here = f"{THERE}-copy", str(self._noise), str(self._folder / "copy")
        for title, place, other in (
            ("`jlr cp` with the host, to `scp`", "lab", "lab"),
            ("`jlr cp` with the container, to `scp` to its sshd", self._name, "own"),
            ("… to `scp` to its sshd by a jump", self._name, "jumped"),
        ):
            size = self._megabytes
            ours, theirs = ("jlr", "cp", f"{place}:{THERE}", here), (*scp, f"{other}:{THERE}", here)
            yield Row(f"{title}: down", size, Way(ours), Way(theirs), 0.9)
            ours, theirs = ("jlr", "cp", file, f"{place}:{copy}"), (*scp, file, f"{other}:{copy}")
            yield Row(f"{title}: up", size, Way(ours), Way(theirs), 0.9)
        for size in SIZES:
            here_tree, there = str(self._folder / f"tree-{size}"), f"{THERE}-{size}"
            for title, shell, other, without_rsync in (
                ("to `rsync` to its sshd", (), "own", False),
                ("to `rsync` to its sshd by a jump", (), "jumped", False),
                ("to `rsync` by `ssh dgx docker exec`", by_engine[-5:-1], self._name, False),
                ("without rsync, to `rsync` to its sshd", (), "own", True),
            ):
                begin = f"{FILES} files of {size} kB, {title}"
                rsync = self._rsync(*shell)
                ours = ("jlr", "cp", "-r", here_tree, f"{self._name}:{copy}")
                theirs = (*rsync, f"{here_tree}/", f"{other}:{copy}")
                way = Way(ours, without_rsync=without_rsync)
                yield Row(f"{begin}: up", FILES, way, Way(theirs), 0.9)
                ours = ("jlr", "cp", "-r", f"{self._name}:{there}", here)
                theirs = (*rsync, f"{other}:{there}/", here)
                way = Way(ours, without_rsync=without_rsync)
                yield Row(f"{begin}: down", FILES, way, Way(theirs), 0.9)

    def _rsync(self, *shell: str) -> tuple[str, ...]:
        return ("rsync", "-a", "--blocking-io", "-e", " ".join((*self._ssh, *shell)))

    def measured(self, row: Row, rounds: int) -> tuple[float, float]:
        """Return the median seconds of both ways."""
        pairs = []
        for _ in range(rounds):
            taken = []
            for way in (row.ours, row.theirs):
                self._clean()
                taken.append(self._seconds(way))
            pairs.append((taken[0], taken[1]))
        return medians(pairs)

    def _clean(self) -> None:
        """Remove what was copied before."""
        for host in ("own", "lab"):
            self._seconds(Way((*self._ssh, host, f"rm -rf {THERE}-copy")))
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
        environment = self._environment
        if way.without_rsync:
            environment = {**environment, "PATH": str(Path(sys.executable).parent)}
        with (way.given or Path(os.devnull)).open("rb") as source:
            return timed(lambda: run_to_its_end(way.argv, environment, source, PATIENCE))


@contextmanager
def clients(megabytes: int) -> Iterator[Clients]:
    """Give everything that is needed, until the end of a `with` block."""
    with (
        bench("lab/ssh", ("--shm-size", "8g")) as parts,
        tempfile.TemporaryDirectory(dir=MEMORY) as folder,
        ExitStack() as stack,
    ):
        yield Clients(parts, Path(folder), megabytes, stack)


def main() -> int:
    """Print the table and return the exit status."""
    numbers = [int(word) for word in sys.argv[1:3]]
    rounds, megabytes = (*numbers, *(ROUNDS, MEGABYTES)[len(numbers) :])
    wanted_row = "".join(sys.argv[3:])
    missed = False
    print(f"| {megabytes} MB, or files; a second | jlr | the other | ratio | wanted |")
    print("|---|---|---|---|---|")
    with clients(megabytes) as parts:
        for row in parts.rows():
            if wanted_row not in row.title:
                continue
            ours, theirs = parts.measured(row, rounds)
            ratio = theirs / ours
            missed |= row.target is not None and ratio < row.target
            wanted = "" if row.target is None else f"≥ {row.target}"
            rates = f"{row.amount / ours:.0f} | {row.amount / theirs:.0f} | {ratio:.2f}"
            print(f"| {row.title} | {rates} | {wanted} |", flush=True)
        if wanted_row in TRIP:
            ours, theirs = parts.trips()
            print(f"\n{TRIP}: `ssh cont1.jlr` {ours:.2f} ms, its sshd {theirs:.2f} ms")
    return int(missed)


if __name__ == "__main__":
    sys.exit(main())
