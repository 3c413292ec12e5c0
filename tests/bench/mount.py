"""`jlr mount` against plain `sshfs`: same server, same run, medians, as ratios.

`python -m tests.bench.mount [ROUNDS]` prints the table of docs/speed.md. Needs root, because it
starts an sshd of its own, and sshfs.
"""

from __future__ import annotations

import os
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

from tests.bench.tunnel import DELAY, RATE, part, root_sshd
from tests.lab.accounts import Account
from tests.lab.laptop import Laptop
from tests.lab.sshd import make_key
from tests.mounts.parts import remember_session

FOLDERS, FILES = 50, 100
ROUNDS, MEGABYTES = 5, 500
WANTED = 0.9


@dataclass(frozen=True)
class Bench:
    """A laptop that knows the host as `near` and, with a round trip of 50 ms, as `far`."""

    laptop: Laptop
    remote: Path
    scratch: Path

    @contextmanager
    def mounted(self, way: str, host: str) -> Iterator[Path]:
        """Mount the host's folder, anew, so that no cache is warm."""
        local = self.laptop.folder / "home" / f"{way}-{host}"
        if way == "jlr":
            done = self.laptop.jlr("-q", "mount", str(local), f"{host}:{self.remote}")
        else:
            local.mkdir()
            options = "reconnect,idmap=user,nosuid,nodev"
            config = str(self.laptop.ssh_config)
            argv = ("sshfs", "-F", config, "-o", options, f"{host}:{self.remote}", str(local))
            done = self.laptop.run(*argv)
        assert done.status == 0, done
        try:
            yield local
        finally:
            if way == "jlr":
                assert self.laptop.jlr("mount", "--unmount", str(local)).status == 0
            else:
                subprocess.run(("fusermount3", "-u", str(local)), check=True)
                local.rmdir()


@contextmanager
def bench() -> Iterator[Bench]:
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(dir="/var/tmp")))
        key = make_key(folder / "key")
        sshd = stack.enter_context(root_sshd(key))
        line = stack.enter_context(part("line", sshd.port, DELAY, RATE))[0]
        laptop = Laptop()
        stack.callback(laptop.remove)
        stack.callback(laptop.shut_down)
        root = Account("root", 0, Path("/root"), "/bin/bash")
        for host, port in (("near", sshd.port), ("far", line)):
            laptop.add_host(host, sshd, root, key=key, port=port)
            remember_session(laptop, host, host=host)
        remote = folder / "remote"
        for number in range(FOLDERS):
            (inner := remote / "tree" / f"folder{number}").mkdir(parents=True)
            for file in range(FILES):
                (inner / f"file{file}").write_bytes(b"x" * 200)
        yield Bench(laptop, remote, folder)


def copy(source: Path, target: Path) -> float:
    since = time.perf_counter()
    subprocess.run(("cp", str(source), str(target)), check=True)
    return source.stat().st_size / (time.perf_counter() - since) / 1e6


def walk(tree: Path) -> float:
    since = time.perf_counter()
    argv = ("find", str(tree), "-type", "f", "-size", "-300c")
    found = subprocess.run(argv, check=True, capture_output=True).stdout.splitlines()
    assert len(found) == FOLDERS * FILES
    return len(found) / (time.perf_counter() - since)


def read(tree: Path, folders: int) -> float:
    since = time.perf_counter()
    count = 0
    for folder in sorted(tree.iterdir())[:folders]:
        for file in folder.iterdir():
            count += len(file.read_bytes()) // 200
    return count / (time.perf_counter() - since)


Samples = dict[tuple[str, str], list[float]]
Measure = Callable[[Path], float]


def measure(parts: Bench, rounds: int) -> Samples:
    samples: Samples = defaultdict(list)
    for number in range(rounds):
        for host, folders in (("near", 10), ("far", 1)):
            for name, one in measures(parts, folders):
                for way in ("sshfs", "jlr") if number % 2 else ("jlr", "sshfs"):
                    with parts.mounted(way, host) as local:
                        samples[way, f"{host}, {name}"].append(one(local))
    return samples


def measures(parts: Bench, folders: int) -> list[tuple[str, Measure]]:
    source, back = parts.scratch / "source", parts.scratch / "back"
    if not source.exists():
        source.write_bytes(os.urandom(1 << 20) * MEGABYTES)
    return [
        ("copy there, MB/s", lambda local: copy(source, local / "big")),
        ("copy back, MB/s", lambda local: copy(local / "big", back)),
        ("walk, files/s", lambda local: walk(local / "tree")),
        ("read small files, files/s", lambda local: read(local / "tree", folders)),
    ]


def table(samples: Samples) -> str:
    lines = ["| | `sshfs` | `jlr mount` | ratio |", "|---|---|---|---|"]
    for name in dict.fromkeys(name for _, name in samples):
        theirs, ours = (statistics.median(samples[way, name]) for way in ("sshfs", "jlr"))
        mark = "" if ours / theirs >= WANTED else " (missed)"
        lines.append(f"| {name} | {theirs:.4g} | {ours:.4g} | {ours / theirs:.2f}{mark} |")
    return "\n".join(lines)


if __name__ == "__main__":
    with bench() as parts:
        print(table(measure(parts, int(sys.argv[1]) if sys.argv[1:] else ROUNDS)))
