"""A person's work that an outage must not touch, and how long the page is away."""

from __future__ import annotations

import json
import re
import secrets
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from urllib.error import URLError

import psutil
from playwright.sync_api import Page

from tests.lab.accounts import Account
from tests.lab.browser import outputs
from tests.lab.laptop import Laptop
from tests.lab.programs import load
from tests.link.desk import is_link
from tests.sessions.parts import Kernel, Session

# How much longer all may take beside other tests on two cores; `tests/bench` measures alone.
BUSY = 3.0


def busy() -> float:
    """Return how much longer all may take now: more where more programs want the cores."""
    return max(BUSY, load())


@contextmanager
def within(limit: float) -> Iterator[None]:
    """Check that something takes no more than `limit` seconds, or `busy` times as much."""
    factor, began = busy(), time.monotonic()
    yield
    took = time.monotonic() - began
    assert took <= limit * max(factor, busy()), f"it took {took:.1f} s, and not {limit} s"


@dataclass
class Work:
    """A kernel with a variable that exists nowhere else."""

    session: Session
    kernel: Kernel  # with a websocket from before the outage
    value: str  # the variable's

    def check(self) -> None:
        """Ask the kernel for the variable, by a new websocket as a page makes one by itself."""
        with self.kernel.reached_anew() as kernel:
            assert kernel.run("kept") == repr(self.value)

    def seconds_away(self, limit: float) -> float:
        """Return how long it takes until the page answers again; it must within `limit`."""
        began = time.monotonic()
        while True:
            try:
                self.session.ask("api/status")
            except (URLError, OSError, ValueError):
                assert time.monotonic() - began < limit, f"no answer within {limit} s"
                time.sleep(0.05)
            else:
                return time.monotonic() - began

    def comes_back(self, limit: float) -> None:
        """See that the page answers again in time, and that nothing is lost."""
        away = self.seconds_away(limit * BUSY + 30)
        assert away <= limit * BUSY, f"back after {away:.1f} s, and not within {limit} s"
        self.check()


@contextmanager
def work_in(session: Session) -> Iterator[Work]:
    """Give a kernel of the session that knows a variable."""
    with session.notebook(f"{secrets.token_hex(4)}.ipynb") as kernel:
        value = secrets.token_hex(8)
        kernel.run(f"kept = {value!r}")
        assert kernel.run("kept") == repr(value)
        yield Work(session, kernel, value)


def observers(account: Account) -> int:
    """Return how many of the user's engine clients read events."""
    return sum(words[:2] == ["docker", "events"] for words in account.command_lines())


def state(laptop: Laptop) -> tuple[str, str]:
    [told] = json.loads(laptop.jlr("list", "--json").stdout)
    return str(told["state"]), str(told["detail"])


def link_of(laptop: Laptop) -> psutil.Process:
    [link] = [process for process in laptop.processes() if is_link(process)]
    return link


def sshd_of(laptop: Laptop) -> int | None:
    """Return the id of the sshd that serves the link's connection, once the link has found out."""
    latest = laptop.link_log().rpartition(" connected: ")[2]
    told = re.search(
        r" an sshd to end with the next connection: \S+/(\d+)/\d+$", latest, re.MULTILINE
    )
    return int(told[1]) if told else None


A_SECOND = 5
CELL = "import time\nfor n in range({count}): print('line', n, flush=True); time.sleep({pause})"


def lines(page: Page) -> list[int]:
    return [int(found) for found in re.findall(r"line (\d+)", outputs(page))]
