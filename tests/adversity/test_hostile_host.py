"""A host that answers nonsense to every script: no traceback, no bug, nothing for the terminal.

The host decides what its shell, engine, drivers and servers print. Every command that reads from a
host is given such answers, drawn with a fixed seed from the separators and words of real ones.
"""

from __future__ import annotations

import random
import re
import time

import pytest

from jlremote.errors import ConnectionRefused, NoShell
from jlremote.host.contract import Completed, Steps
from jlremote.host.framing import unframed
from jlremote.link.client.link import Link
from jlremote.link.wire.status import LinkStatus
from tests.adversity.test_inputs import CODES, MOST_SECONDS, bounded, no_host_answers
from tests.cli.conftest import Jlr, jlr, laptop
from tests.long import WANTED

__all__ = ["jlr", "laptop", "no_host_answers"]

ANSWERS_EACH = 300 if WANTED else 12
COMMANDS = (
    *(
        "list dgx",
        "list dgx --all",
        "list dgx --json",
        "status",
        "url",
        "open",
        "logs",
        "logs -n 3",
    ),
    *("stop --force", "stop --remove --force", "gpus dgx", "gpus dgx --json", "images dgx --all"),
    *("images dgx --json", "runs dgx", "runs dgx --json", "runs dgx --clean", "attach dgx/job"),
    *("logs dgx/job", "stop dgx/job", "start dgx cont1", "start dgx new --image i --gpus auto"),
    *("start dgx new --runtime none", "start dgx new --image i --dry-run", "forward 6006"),
    *("run dgx --detach --image i -- true", "run dgx --detach --in cont1 -- true", "shell -- true"),
    *("save dgx/cont1 img", "push dgx img", "mount there dgx/cont1", "doctor dgx --json"),
    *("stop --all", "open dgx/other", "build dgx . -t a", "pull dgx img", "disconnect dgx"),
)
PIECES = (
    *("\x1e", "\x1f", "\0", "\n", "\n", "\t", " ", ";", "|", ",", ":", "/", "=", "\\"),
    *("{", "}", "[", "]", '"', "{}", "[]", "null", "true", "NaN", '{"Id": 1}', '[{"Id": "x"}]'),
    *("-1", "0", "1", "7", "9" * 30, "9" * 5000, "1e999", "0x1f", "²", "[N/A]", "ERR!", "8888"),
    *("2026-01-01T00:00:00Z", "2026-13-45T99:99:99Z", "0001-01-01T00:00:00Z", "docker", "podman"),
    *(
        "server",
        "directory",
        "listening",
        "running",
        "exited",
        "dead",
        "job",
        "cont1",
        "host",
        "gpu",
    ),
    *("GPU-1", "process", "sha256:abc", "<none>", "none", "../../etc", "-rf", "$(id)", "`id`"),
    *("\x1b]52;c;aGk=\x07", "\x1b[2J", "\x9b2J", "\r", "\u202e", "\udcff", "a" * 3000, "[" * 3000),
)


def answer(draw: random.Random) -> str:
    """Return what a program of the host prints."""
    return "".join(draw.choice(PIECES) for _ in range(draw.choice((0, 1, 3, 8, 30))))


@pytest.fixture
def draw(no_host_answers: None, monkeypatch: pytest.MonkeyPatch) -> random.Random:
    """Be connected to a host that answers what is drawn."""
    chance = random.Random()

    def run(self: Link, steps: Steps, **_: object) -> dict[str, Completed]:
        if chance.random() < 0.05:
            raise ConnectionRefused("nothing listens")
        statuses = (0, 0, 0, 0, 1, 2, 125, 126, 127, 255)
        return {
            name: Completed(chance.choice(statuses), answer(chance), answer(chance))
            for name in steps
        }

    def status(self: Link, **_: object) -> LinkStatus:
        return LinkStatus("up", time.time(), None, (), ())

    monkeypatch.setattr(Link, "run", run)
    monkeypatch.setattr(Link, "status", status)
    return chance


@pytest.mark.parametrize("line", COMMANDS)
def test_no_answer_of_a_host_is_a_bug_or_hangs(line: str, jlr: Jlr, draw: random.Random) -> None:
    for number in range(ANSWERS_EACH):
        draw.seed(f"{line} {number}")
        with bounded(MOST_SECONDS):
            outcome = jlr("--no-input", *line.split())
        told = outcome.stdout + outcome.stderr
        assert outcome.code in CODES, (line, number, outcome)
        assert "Traceback" not in told, (line, number, outcome)
        assert not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f]", told), (line, number, outcome)


@pytest.mark.parametrize("status", ["", "x", "-", "9" * 5000, "²", "1 2", "\x1b[2J"])
def test_an_exit_status_that_is_no_number_is_not_believed(status: str) -> None:
    """A login shell reads the script, and so knows the marker."""
    text = f"m begin one\noutput\nm end one {status}\n"
    with pytest.raises(NoShell):
        unframed(["one"], text, text, "m")
