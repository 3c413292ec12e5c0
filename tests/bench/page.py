"""JupyterLab's first load in Chromium, through the tunnel and through `ssh -L`.

`python -m tests.bench.page [ROUNDS]` prints a table, on the lab's real parts: near, and over a line
of 50 ms round trip. Each load is a new browser's, with an empty cache; the ways take turns. Exit
code 1 says that a target was missed.
"""

from __future__ import annotations

import json
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from urllib.parse import urlsplit, urlunsplit

from tests.bench.parts import lab
from tests.bench.tunnel import DELAY, RATE, forwarding, part
from tests.lab import browser
from tests.lab.containers import Container
from tests.lab.laptop import Laptop
from tests.lab.ports import free_port
from tests.lab.remote_host import new_laptop

ROUNDS = 5
TARGET = 1.1
MILLISECONDS = 120_000
# The launcher is the last thing that a new JupyterLab draws.
DRAWN = '.jp-LauncherCard[data-category="Notebook"]'


@contextmanager
def ssh_forward(
    laptop: Laptop, host: str, target: Container, program: tuple[str, ...] = ("ssh",)
) -> Iterator[int]:
    """Run ssh, or what restarts it, and give the local port that leads to a container."""
    port = free_port()
    forward = f"127.0.0.1:{port}:{target.address}:8888"
    argv = (*program, "-F", str(laptop.ssh_config), "-N", "-o", "ExitOnForwardFailure=yes")
    environment = {**laptop.environment, "AUTOSSH_GATETIME": "0"}
    with forwarding((*argv, "-L", forward, host), port, environment):
        yield port


def load(url: str) -> float:
    """Return the seconds until a new browser has drawn JupyterLab."""
    with tempfile.TemporaryDirectory() as profile, browser.chromium(Path(profile)) as chromium:
        page = chromium.new_page()
        began = time.perf_counter()
        page.goto(url, timeout=MILLISECONDS, wait_until="commit")
        page.locator(DRAWN).first.wait_for(timeout=MILLISECONDS)
        return time.perf_counter() - began


def through(url: str, port: int) -> str:
    """Return a URL by another local port."""
    return urlunsplit(urlsplit(url)._replace(netloc=f"127.0.0.1:{port}"))


def measured(ways: dict[str, str], rounds: int) -> dict[str, list[float]]:
    """Return the seconds of each way's loads; one before the first warms the server up."""
    load(ways["ssh"])
    seconds: dict[str, list[float]] = {way: [] for way in ways}
    for number in range(rounds):
        for way in sorted(ways, reverse=bool(number % 2)):
            seconds[way].append(load(ways[way]))
    return seconds


def row(where: str, seconds: dict[str, list[float]]) -> tuple[str, bool]:
    ssh, jlr = (statistics.median(seconds[way]) for way in ("ssh", "jlr"))
    pairs = zip(seconds["jlr"], seconds["ssh"], strict=True)
    ratio = statistics.median(ours / theirs for ours, theirs in pairs)
    line = f"| {where} | {ssh:.2f} s | {jlr:.2f} s | {ratio:.2f} | ≤ {TARGET} |"
    return line, ratio <= TARGET


def main() -> int:
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else ROUNDS
    with lab() as parts, ExitStack() as stack:
        line = stack.enter_context(part("line", parts.sshd.port, DELAY, RATE))[0]
        container = parts.containers()
        met = True
        print("| | `ssh -L` | `jlr` | ratio | wanted |\n|---|---|---|---|---|", flush=True)
        for where, port in (("loopback", parts.sshd.port), ("50 ms, 1 Gb/s", line)):
            laptop = stack.enter_context(new_laptop(*parts.host))
            laptop.add_host("there", parts.sshd, parts.account, key=parts.keys.private, port=port)
            argv = ("start", "there", container.name, "--json", "--no-browser")
            started = laptop.jlr(*argv, timeout=150)
            assert started.status == 0, started
            url = json.loads(started.stdout)["url"]
            with ssh_forward(laptop, "there", container) as by_ssh:
                ways = {"jlr": url, "ssh": through(url, by_ssh)}
                told, good = row(where, measured(ways, rounds))
            print(told, flush=True)
            met = met and good
    return int(not met)


if __name__ == "__main__":
    sys.exit(main())
