"""The program that unmounts, run and waited for."""

from __future__ import annotations

import subprocess

from jlremote.text import one_line

_SECONDS = 10.0


def refusal(command: tuple[str, ...]) -> str | None:
    """Run it; return what it says if it refuses, `None` if it has unmounted."""
    try:
        done = subprocess.run(
            command, stdin=subprocess.DEVNULL, capture_output=True, timeout=_SECONDS, check=False
        )
    except subprocess.TimeoutExpired:
        return f"`{command[0]}` does not end"
    if done.returncode == 0:
        return None
    return one_line(done.stderr.decode("utf-8", "replace")) or "it gives no reason"
