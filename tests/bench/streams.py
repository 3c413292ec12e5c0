"""Bytes through `jlr`'s commands: `python -m tests.bench.streams [ROUNDS]`, on real parts.

Each against what people do by hand with `ssh`, in turn within the same run; the medians of the
times are compared. Both have a connection that is open. The start of a command without bytes is
measured beside each, and the last column is the ratio of the rates without it. Exit code 1 says
that a target was missed.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

from tests.bench.start import Bench, Contest, bench, run_to_its_end, timed

ROUNDS = 3
MEGABYTES = 50
LARGE = 300  # of a build's context
FILES = 5000  # of another one
LIVE = 200  # of a job's output
TREE = 100  # of what rsync copies
JOB = "bench-job"
IMAGE = "lab/ssh"  # it has rsync
TARGET = 0.9
TARGET_OF_FILES = 0.4  # Python reads each file, and makes its header; 0.2 with a message for each
PATIENCE = 300.0


class Streams:
    """Noise, which nothing can compress, to and from a container and the host."""

    def __init__(self, parts: Bench, noise: Path) -> None:
        self._parts = parts
        self._noise = noise
        self._path = str(Path(parts.laptop.folder) / "streams")
        self._ssh = ("ssh", "-F", str(parts.laptop.ssh_config), "-S", self._path, "lab")
        self._inside = ("jlr", "shell", parts.session, "--")
        self._by_hand = (*self._ssh, "docker", "exec", "-i", parts.session)
        self._make = f"head -c {MEGABYTES << 20} /dev/urandom"

    def begin(self) -> None:
        """Put the noise there, and connect."""
        argv = (*self._ssh[:-1], "-fNM", self._ssh[-1])
        subprocess.run(argv, env=self._parts.laptop.environment, check=True)
        self._seconds((*self._by_hand, "sh", "-c", f"'{self._make} >/tmp/noise'"))
        words = ("jlr", "run", "lab", "--image", IMAGE, "--name", JOB, "--", "sh", "-c", self._make)
        self._seconds(words)

    def _folder(self, name: str, megabytes: int) -> Path:
        """Make a folder with a file of noise."""
        folder = self._noise.with_name(f"{self._noise.name}-{name}")
        folder.mkdir()
        with (folder / "noise").open("wb") as file:
            for _ in range(megabytes):
                file.write(os.urandom(1 << 20))
        return folder

    def large(self) -> Iterator[Contest]:
        """Give those that take long, each with its own amount of bytes."""
        title = f"a build's context of {LARGE} MB, to `tar` into `ssh docker build -`"
        yield self._build(title, self._folder("context", LARGE), TARGET)
        many = self._folder("many", 0)
        for number in range(FILES):
            (many / str(number)).write_bytes(os.urandom(4000))
        title = f"a build's context of {FILES:,} files of 4 kB, to the same"
        yield self._build(title, many, TARGET_OF_FILES)
        print_noise = ("head", "-c", str(LIVE << 20), "/dev/urandom")
        run = (*self._ssh, "docker", "run", "--rm", "--log-driver", "json-file", IMAGE)
        yield Contest(
            f"a job's {LIVE} MB of output, live, to `docker run`",
            partial(
                self._seconds, ("jlr", "run", "lab", "--image", IMAGE, "--rm", "--", *print_noise)
            ),
            partial(self._seconds, (*run, *print_noise)),
            TARGET,
        )
        begin = " ".join((*self._ssh, "docker", "run", "-d", *run[-4:], *print_noise))
        follow = " ".join((*self._ssh, "docker", "logs", "-f"))
        yield Contest(
            "… to `docker run -d` and `docker logs -f`, which outlast the laptop as it does",
            partial(
                self._seconds, ("jlr", "run", "lab", "--image", IMAGE, "--rm", "--", *print_noise)
            ),
            partial(self._seconds, ("sh", "-c", f"{follow} $({begin})")),
            TARGET,
        )
        tree = f"{self._folder('tree', TREE)}/"
        inside = f"{self._parts.session}:/tmp/"
        clean = ("jlr", "shell", self._parts.session, "--", "rm", "-rf", "/tmp/ours", "/tmp/theirs")

        def copied(shell: str, target: str) -> float:
            self._seconds(clean)
            return self._seconds(("rsync", "-a", "--rsh", shell, tree, target))

        by_hand = f"{' '.join(self._ssh)} docker exec -i"
        yield Contest(
            f"rsync of {TREE} MB by `jlr shell`, to `ssh docker exec -i`",
            partial(copied, "jlr shell", f"{inside}ours"),
            partial(copied, by_hand, f"{inside}theirs"),
            TARGET,
        )

    def _build(self, title: str, context: Path, target: float) -> Contest:
        (context / "Dockerfile").write_text("FROM lab/plain\n", encoding="utf-8")
        pack, build = f"tar -C {context} -c .", "DOCKER_BUILDKIT=0 docker build -q -"
        return Contest(
            title,
            partial(self._seconds, ("jlr", "build", "lab", str(context), "-t", "bench/ours")),
            partial(self._seconds, ("sh", "-c", f"{pack} | {' '.join(self._ssh)} {build}")),
            target,
        )

    def end(self) -> None:
        """Disconnect."""
        self._seconds(("jlr", "stop", f"lab/{JOB}", "--remove", "--yes"))
        argv = (*self._ssh[:-1], "-O", "exit", self._ssh[-1])
        subprocess.run(argv, env=self._parts.laptop.environment, check=True, capture_output=True)

    def contests(self) -> Iterator[Contest]:
        """Give each with the command that moves the bytes."""
        for title, words, given in (
            ("both ways, `cat`", ("cat",), True),
            ("down, `cat FILE`", ("cat", "/tmp/noise"), False),
            ("up, `dd of=/dev/null`", ("dd", "of=/dev/null", "bs=64k"), True),
        ):
            yield Contest(
                title,
                partial(self._seconds, (*self._inside, *words), given=given),
                partial(self._seconds, (*self._by_hand, *words), given=given),
                TARGET,
            )
        logs = (*self._ssh, "docker", "logs", "--follow", JOB)
        yield Contest(
            "a job's output, `jlr attach`, to `docker logs`",
            partial(self._seconds, ("jlr", "attach", f"lab/{JOB}")),
            partial(self._seconds, logs),
            TARGET,
        )

    def start(self) -> Contest:
        """Give the start of a command that moves nothing."""
        return Contest(
            "start of a command, `true`",
            partial(self._seconds, (*self._inside, "true")),
            partial(self._seconds, (*self._by_hand, "true")),
            TARGET,
        )

    def _seconds(self, argv: tuple[str, ...], *, given: bool = False) -> float:
        with self._noise.open("rb") if given else Path(os.devnull).open("rb") as source:
            environment = self._parts.laptop.environment
            return timed(lambda: run_to_its_end(argv, environment, source, PATIENCE))


@contextmanager
def streams() -> Iterator[Streams]:
    """Give everything that is needed, until the end of a `with` block."""
    with bench(IMAGE) as parts, tempfile.TemporaryDirectory() as folder:
        noise = Path(folder) / "noise"
        noise.write_bytes(os.urandom(MEGABYTES << 20))
        made = Streams(parts, noise)
        made.begin()
        try:
            yield made
        finally:
            made.end()


def main() -> int:
    """Print the table and return the exit status."""
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else ROUNDS
    missed = False
    print("| MB/s, medians | jlr | ssh | ratio | wanted | without the start |")
    print("|---|---|---|---|---|---|")
    starts: list[Pair] = []
    with streams() as parts:
        for contest in parts.contests():
            pairs = []
            for _ in range(rounds):
                pairs.append(pair(contest))
                starts.append(pair(parts.start()))
            ours, theirs = medians(pairs)
            missed |= theirs < contest.target * ours
            ours_begun, theirs_begun = medians(starts)
            without = (theirs - theirs_begun) / max(ours - ours_begun, 0.001)
            rates = f"{MEGABYTES / ours:.1f} | {MEGABYTES / theirs:.1f} | {theirs / ours:.2f}"
            print(f"| {contest.title} | {rates} | ≥ {contest.target} | {without:.2f} |", flush=True)
        print("\n| seconds, medians | jlr | ssh | ratio of the rates | wanted |")
        print("|---|---|---|---|---|")
        for contest in parts.large():
            ours, theirs = medians([pair(contest) for _ in range(rounds)])
            missed |= theirs < contest.target * ours
            times = f"{ours:.1f} | {theirs:.1f} | {theirs / ours:.2f}"
            print(f"| {contest.title} | {times} | ≥ {contest.target} |", flush=True)
    ours, theirs = medians(starts)
    print(f"\nStart of a command, `true`: jlr {ours:.2f} s, ssh {theirs:.2f} s")
    return int(missed)


Pair = tuple[float, float]


def pair(contest: Contest) -> Pair:
    """Return the seconds of both ways, one after the other."""
    return contest.ours(), contest.theirs()


def medians(pairs: list[Pair]) -> Pair:
    """Return the median of each way."""
    ours, theirs = zip(*pairs, strict=True)
    return statistics.median(ours), statistics.median(theirs)


if __name__ == "__main__":
    sys.exit(main())
