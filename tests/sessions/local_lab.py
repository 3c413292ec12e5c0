"""The JupyterLab of the laptop that `jlr local lab` runs."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from tests.lab.ports import free_port
from tests.lab.programs import wait_until
from tests.sessions.parts import Session

SECONDS = 90
END_SECONDS = 180  # it ends its kernels, and gives each 42 s


@dataclass(frozen=True)
class LocalLab:
    """A JupyterLab of the laptop.

    Attributes:
        server: it, as a session.
        said: what was printed before it began.
    """

    server: Session
    process: subprocess.Popen[bytes]
    said: str


@contextmanager
def local_lab(session: Session) -> Iterator[LocalLab]:
    """Run `jlr local lab` in the laptop's home folder."""
    laptop = session.laptop
    options = ("--no-browser", "--allow-root", "--ServerApp.ip=127.0.0.1")
    words = ("local", "lab", session.name, "--", *options, f"--ServerApp.port={free_port()}")
    printed = laptop.folder / "lab.log"  # a pipe that is not read would block it
    with printed.open("wb") as log:
        process: subprocess.Popen[bytes] = laptop.popen(
            *words, forked=False, cwd=laptop.folder / "home", stdout=log, stderr=log
        )
    try:
        found: list[str] = []

        def listens() -> bool:
            found[:] = re.findall(r"http://127\.0\.0\.1:\d+/lab\?token=\w+", printed.read_text())
            assert process.poll() is None, printed.read_text()
            try:
                return bool(found and Session(laptop, {"url": found[0]}).born())
            except OSError:  # it says so a moment before
                return False

        wait_until(listens, "its listening", timeout=SECONDS)
        yield LocalLab(Session(laptop, {"url": found[0]}), process, printed.read_text())
    finally:
        process.terminate()
        process.wait(timeout=END_SECONDS)
