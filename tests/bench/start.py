"""Time to a notebook: `python -m tests.bench.start [ROUNDS]`, on the lab's real parts.

Three moments, each against what people do by hand, in turn within the same run; the medians are
compared. Exit code 1 says that a target was missed.
"""

from __future__ import annotations

import http.client
import json
import statistics
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from functools import cached_property
from typing import IO

from tests.bench.parts import lab
from tests.bench.tunnel import RATE, part
from tests.lab.containers import Container, ContainerFactory
from tests.lab.laptop import Laptop
from tests.lab.remote_host import new_laptop
from tests.sessions.parts import Kernel, Session

ROUNDS = 5
IMAGE = "lab/jupyter"
HAND_MADE_PORT = "19321"
PATIENCE = 300.0
EXEC_SECONDS = 0.35


@dataclass(frozen=True)
class Contest:
    """One measure: jlr's time, the other way's time, and the target for their ratio."""

    title: str
    ours: Callable[[], float]
    theirs: Callable[[], float]
    target: float


class Bench:
    """The lab, and one container with a running Jupyter in it."""

    def __init__(self, laptop: Laptop, containers: ContainerFactory) -> None:
        self.laptop = laptop
        self._containers = containers
        self._warm = containers()
        self.session = self._warm.name
        self._jlr("start", "lab", self.session, "--no-browser")

    def contests(self) -> tuple[Contest, ...]:
        return (
            Contest(
                "`jlr open --no-browser` on a live link, to `python -c 'import click'`",
                lambda: self._jlr("open", self.session, "--no-browser"),
                lambda: timed(lambda: self._run(sys.executable, "-c", "import click")),
                3.0,
            ),
            Contest(
                f"`jlr exec -c 1`, to a connected client of its kernel and {EXEC_SECONDS} s",
                lambda: self._jlr("exec", self._warm.name, "-c", "1"),
                self._connected_client,
                1.0,
            ),
            Contest(
                "`jlr start`, Jupyter runs, no link yet, to `ssh -fNL` and "
                "`ssh docker exec jupyter server list`",
                self._attach,
                self._attach_by_hand,
                0.4,
            ),
            Contest(
                "`jlr start`, nothing there and no link, to `ssh docker run` of JupyterLab and "
                "`ssh -fNL` until it answers",
                self._cold,
                self._cold_by_hand,
                1.25,
            ),
        )

    def _jlr(self, *words: str) -> float:
        return timed(lambda: self._run("jlr", *words))

    def _run(self, *argv: str) -> None:
        run_to_its_end(argv, self.laptop.environment)

    @cached_property
    def _connected(self) -> Kernel:
        self._jlr("exec", self._warm.name, "-c", "1")
        report = self.laptop.jlr("open", self._warm.name, "--no-browser", "--json").stdout
        session = Session(self.laptop, json.loads(report))
        known = {each["path"]: each["kernel"]["id"] for each in session.ask("api/sessions")}
        kernel = Kernel(session, known["jlr-exec"], session.channels(known["jlr-exec"]))
        kernel.await_start()
        return kernel

    def _connected_client(self) -> float:
        kernel = self._connected
        return EXEC_SECONDS + timed(lambda: kernel.run("1"))

    def _attach(self) -> float:
        self._jlr("disconnect", "lab")
        return self._jlr("start", "lab", self._warm.name, "--no-browser")

    def _attach_by_hand(self) -> float:
        def attach() -> None:
            self._forward_by_hand(self._warm)
            self._ssh("docker", "exec", self._warm.name, "jupyter", "server", "list")

        return self._timed_by_hand(attach)

    def _timed_by_hand(self, action: Callable[[], None]) -> float:
        try:
            return timed(action)
        finally:
            self._run(*self._shared_ssh, "-O", "exit", "lab")

    @property
    def _shared_ssh(self) -> tuple[str, ...]:
        master = f"{self.laptop.folder}/hand-made"
        return ("ssh", "-F", str(self.laptop.ssh_config), "-S", master)

    def _forward_by_hand(self, container: Container) -> None:
        forward = f"{HAND_MADE_PORT}:{container.address}:8888"
        self._run(*self._shared_ssh, "-fNL", forward, "-M", "lab")

    def _ssh(self, *argv: str) -> None:
        # A connection of its own, as the shell functions that people use have it.
        self._run("ssh", "-F", str(self.laptop.ssh_config), "-S", "none", "lab", *argv)

    def _cold(self) -> float:
        self._jlr("stop", self._warm.name)  # or the new link would first bring that one back
        self._jlr("disconnect", "lab")
        name = self._containers.name()
        try:
            return self._jlr("start", "lab", name, "--image", IMAGE, "--no-browser")
        finally:
            self._jlr("rm", name, "--force", "--yes")

    def _cold_by_hand(self) -> float:
        container = Container(self._containers.engine, self._containers.name())
        command = ("jupyter", "lab", "--ip=0.0.0.0", "--allow-root", "--no-browser")

        def create() -> None:
            self._ssh("docker", "run", "--detach", "--name", container.name, IMAGE, *command)
            self._forward_by_hand(container)
            wait_for_answer()

        taken = self._timed_by_hand(create)
        container.engine.docker("rm", "--force", container.name)
        return taken


def wait_for_answer() -> None:
    """Return once Jupyter's API answers through the forward that was made by hand."""
    limit = time.monotonic() + PATIENCE
    while time.monotonic() < limit:
        with suppress(OSError):
            connection = http.client.HTTPConnection(
                "127.0.0.1", int(HAND_MADE_PORT), timeout=PATIENCE
            )
            connection.request("GET", "/api")
            connection.getresponse().read()
            return
        time.sleep(0.005)  # refused: nothing that could be awaited tells when it listens
    raise TimeoutError(HAND_MADE_PORT)


def run_to_its_end(
    argv: Sequence[str],
    environment: Mapping[str, str],
    stdin: int | IO[bytes] = subprocess.DEVNULL,
) -> None:
    """Run a program; no pipes, which `ssh -f` would keep open.

    And no timeout of `subprocess`, which looks only every 50 ms whether the program has ended.
    """
    with subprocess.Popen(
        argv, env=environment, stdin=stdin, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    ) as process:
        impatience = threading.Timer(PATIENCE, process.kill)
        impatience.start()
        status = process.wait()
        impatience.cancel()
    if status:
        raise subprocess.CalledProcessError(status, argv)


def timed(action: Callable[[], object]) -> float:
    started = time.perf_counter()
    action()
    return time.perf_counter() - started


@contextmanager
def bench(milliseconds: int = 0) -> Iterator[Bench]:
    """Give all parts, with a line of that round trip between laptop and host."""
    with lab((IMAGE,)) as parts, ExitStack() as stack:
        port = parts.sshd.port
        if milliseconds:
            (port,) = stack.enter_context(part("line", port, milliseconds / 2000, RATE))
        laptop = stack.enter_context(new_laptop(*parts.host, port=port))
        yield Bench(laptop, parts.containers)


def main() -> int:
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else ROUNDS
    missed = False
    with bench() as parts:
        print(f"| what, medians of {rounds} | jlr | by hand | ratio | target |")
        print("|---|---|---|---|---|")
        for contest in parts.contests():
            pairs = [(contest.ours(), contest.theirs()) for _ in range(rounds)]
            ours, theirs = (statistics.median(column) for column in zip(*pairs, strict=True))
            missed |= ours > contest.target * theirs
            print(
                f"| {contest.title} | {ours:.2f} s | {theirs:.2f} s "
                f"| **{ours / theirs:.2f}** | ≤ {contest.target} |",
                flush=True,
            )
    return int(missed)


if __name__ == "__main__":
    sys.exit(main())
