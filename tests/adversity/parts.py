"""Commands, nonsense answers, and a limit for their time."""

from __future__ import annotations

import random
import re
import signal
from collections.abc import Iterator
from contextlib import contextmanager

COMMANDS = re.split(
    r" \| |\n",
    """\
list dgx | list dgx --all | list dgx --json | list cont1 | url | open | logs | logs -n 3
stop --force | rm --force | gpus dgx | gpus dgx --json | image list dgx --all
image list dgx --json | job list dgx | job list dgx --json | job list dgx --clean
job attach dgx/job | logs dgx/job | stop dgx/job | start dgx cont1
start dgx new --image i --gpus auto | start dgx new --runtime none
start dgx new --image i --dry-run | forward 6006 | run dgx --detach --image i -- true
run dgx --detach --in cont1 -- true | shell -- true | image save dgx/cont1 img
image push dgx img | mount there dgx/cont1 | doctor dgx --json | stop --all | open dgx/other
image build dgx . -t a | image pull dgx img | disconnect dgx""",
)


PIECES = (
    *("\x1e", "\x1f", "\0", "\n", "\n", "\t", " ", ";", "|", ",", ":", "/", "=", "\\"),
    *("{", "}", "[", "]", '"', "{}", "[]", "null", "true", "NaN", '{"Id": 1}', '[{"Id": "x"}]'),
    *("-1", "0", "1", "7", "9" * 30, "9" * 5000, "1e999", "0x1f", "²", "[N/A]", "ERR!", "8888"),
    *("2026-01-01T00:00:00Z", "2026-13-45T99:99:99Z", "0001-01-01T00:00:00Z", "docker", "podman"),
    *("server", "directory", "listening", "running", "exited", "dead", "job", "cont1"),
    *("host", "gpu"),
    *("GPU-1", "process", "sha256:abc", "<none>", "none", "../../etc", "-rf", "$(id)", "`id`"),
    *("\x1b]52;c;aGk=\x07", "\x1b[2J", "\x9b2J", "\r", "\u202e", "\udcff", "a" * 3000, "[" * 3000),
)


def answer(draw: random.Random) -> str:
    """Return what a program of the host prints."""
    return "".join(draw.choice(PIECES) for _ in range(draw.choice((0, 1, 3, 8, 30))))


MOST_SECONDS = 60.0
CODES = {0, 1, 2, 4, 5, 6, 7}


class Hang(BaseException):
    """A command took too long; not an Exception, which the error boundary would take."""


@contextmanager
def bounded(seconds: float) -> Iterator[None]:
    """Raise `Hang` once the time is over."""

    def ring(*_: object) -> None:
        raise Hang(f"more than {seconds} s")

    before = signal.signal(signal.SIGALRM, ring)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
