"""The program that unmounts, and the programs that keep a mount in use."""

from __future__ import annotations

import subprocess
from dataclasses import dataclass

from jlremote.text import one_line

_SECONDS = 10.0


@dataclass(frozen=True)
class Holder:
    """A program that `works in`, `has a file open in` or `runs from` a mount (`how`)."""

    pid: int
    name: str
    how: str

    def __str__(self) -> str:
        return f"{self.name} (process {self.pid}) {self.how} it"


def refusal(command: tuple[str, ...]) -> str | None:
    """Run a program that unmounts; return why it refuses, `None` if it has unmounted."""
    try:
        done = subprocess.run(
            command, stdin=subprocess.DEVNULL, capture_output=True, timeout=_SECONDS, check=False
        )
    except subprocess.TimeoutExpired:
        return f"`{command[0]}` does not end"
    if done.returncode == 0:
        return None
    return one_line(done.stderr.decode("utf-8", "replace")) or "it gives no reason"
