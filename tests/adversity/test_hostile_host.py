"""A host that answers nonsense to every script: no traceback, no bug, nothing for the terminal.

The host decides what its shell, engine, drivers and servers print. Every command that reads from a
host is given such answers, drawn with a fixed seed from the separators and words of real ones.
"""

from __future__ import annotations

import random
import re

import pytest

from jlremote.errors import NoShell
from jlremote.place.host.framing import unframed
from tests.adversity.parts import CODES, COMMANDS, MOST_SECONDS, bounded
from tests.cli.conftest import Jlr, jlr, laptop
from tests.long import WANTED

__all__ = ["jlr", "laptop"]

ANSWERS_EACH = 300 if WANTED else 6


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
