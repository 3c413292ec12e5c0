"""A network of its own for the containers of one engine, so that two engines do not meet."""

from __future__ import annotations

import os
import re
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path

import psutil

from tests.lab.programs import attempt, run

_numbers = count()


@contextmanager
def new_bridge() -> Iterator[str]:
    """Give the name of a bridge that is up and has an address.

    The name holds the process's id, so that bridges of killed runs are found and removed.
    """
    sweep()
    name = f"jlr{next(_numbers)}p{os.getpid()}"
    run("ip", "link", "add", name, "type", "bridge")
    try:
        # 198.18.0.0/15 is for tests of networks (RFC 2544).
        run("ip", "address", "add", f"198.19.{secrets.randbelow(256)}.1/24", "dev", name)
        run("ip", "link", "set", name, "up")
        yield name
    finally:
        attempt("ip", "link", "delete", name)


def sweep() -> None:
    for device in Path("/sys/class/net").iterdir():
        owner = re.fullmatch(r"jlr\d+p(\d+)", device.name)
        if owner and not psutil.pid_exists(int(owner[1])):
            attempt("ip", "link", "delete", device.name)
