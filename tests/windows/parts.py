"""A session on Windows, and what its commands said."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit
from urllib.request import urlopen

from tests.lab.programs import Result, wait_until
from tests.lab.windows import WindowsLaptop


def succeeded(result: Result) -> str:
    """Return what a command printed; it must have ended with 0."""
    assert result.status == 0, result
    return result.stdout


@dataclass(frozen=True)
class WindowsSession:
    """A session, with the object that `jlr start --json` printed of it."""

    laptop: WindowsLaptop
    report: dict[str, Any]

    @property
    def name(self) -> str:
        return str(self.report["name"])

    @property
    def url(self) -> str:
        return str(self.report["url"])

    def answers(self) -> bool:
        """Return whether its local port leads to Jupyter."""
        try:
            with urlopen(f"http://{urlsplit(self.url).netloc}/api", timeout=5) as answer:
                return b"version" in answer.read()
        except OSError:
            return False

    def await_answer(self, timeout: float = 60) -> None:
        """Wait until its local port leads to Jupyter."""
        wait_until(self.answers, f"an answer at {self.url}", timeout=timeout)
