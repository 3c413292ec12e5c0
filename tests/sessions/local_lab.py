"""The JupyterLab of the laptop that `jlr lab` runs."""

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


@dataclass(frozen=True)
class LocalLab:
    """A JupyterLab of the laptop.

    Attributes:
        server: it, as a session.
        said: what was printed before it began.
    """

    server: Session
    process: subprocess.Popen[str]
    said: str


@contextmanager
def local_lab(session: Session) -> Iterator[LocalLab]:
    """Run `jlr lab` in the laptop's home folder."""
    options = ("--no-browser", "--allow-root", f"--ServerApp.port={free_port()}")
    process = session.laptop.spawn(
        "lab", session.name, "--", *options, "--ServerApp.ip=127.0.0.1", forked=False
    )
    try:
        url, said = _address(process)
        here = Session(session.laptop, {"url": url})
        wait_until(lambda: _listens(here), "its listening, which it says a moment before")
        yield LocalLab(here, process, said)
    finally:
        process.terminate()
        process.communicate(timeout=SECONDS)


def _address(process: subprocess.Popen[str]) -> tuple[str, str]:
    """Return the URL with the token that JupyterLab prints, and what was said until then."""
    said = ""
    assert process.stdout is not None
    for line in process.stdout:
        said += line
        if found := re.search(r"http://127\.0\.0\.1:\d+/lab\?token=\w+", line):
            return found[0], said
    raise AssertionError(f"JupyterLab has ended without an address: {said}")


def _listens(session: Session) -> bool:
    try:
        return bool(session.born())
    except OSError:
        return False
