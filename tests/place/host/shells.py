"""Steps through a real shell on this machine."""

from __future__ import annotations

import subprocess
from collections.abc import Callable

from jlremote.place.host.contract import Completed, Steps
from jlremote.place.host.framing import run_steps

SHELLS = ("sh", "dash", "bash")
LIMIT = 8 << 20


def through(shell: str, steps: Steps, *, before: str = "", after: str = "") -> dict[str, Completed]:
    """Run steps as a host does: the script on stdin of `sh -s`, bytes with bytes.

    Args:
        shell: which one.
        steps: what to run.
        before: shell text that runs first, as a startup file does.
        after: shell text that runs last.
    """

    def execute(script: str, output: Callable[[str, bytes], None]) -> None:
        whole = f"{before}\n{script}{after}\n"
        done = subprocess.run(
            (shell, "-s"),
            input=whole.encode("utf-8", "surrogateescape"),
            capture_output=True,
            timeout=30,
            check=False,
        )
        output("stdout", done.stdout)
        output("stderr", done.stderr)

    return run_steps(steps, LIMIT, execute)


def run_sh(shell: str, script: str, **variables: str) -> subprocess.CompletedProcess[str]:
    """Run a script on stdin of a shell, perhaps with these variables alone; return how it ended."""
    env = variables or None
    return subprocess.run(
        (shell, "-s"), input=script, env=env, capture_output=True, text=True, timeout=30
    )


def as_bytes(text: str) -> bytes:
    """Return the bytes that a step printed."""
    return text.encode("utf-8", "surrogateescape")
