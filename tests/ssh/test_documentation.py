"""docs/ssh.md promises tests by name; each of them exists."""

from __future__ import annotations

import re
from pathlib import Path

from jlremote import errors

DOCUMENT = Path(__file__).parents[2] / "docs" / "ssh.md"


def defined() -> set[str]:
    sources = [path.read_text() for path in Path(__file__).parents[1].rglob("test_*.py")]
    return {
        name for source in sources for name in re.findall(r"^def (test_\w+)", source, re.MULTILINE)
    }


def test_every_test_that_the_document_names_exists() -> None:
    named = set(re.findall(r"`(test_\w+)`", DOCUMENT.read_text())) - {"test_matrix"}
    assert named
    assert named - defined() == set()


def test_every_error_that_the_document_names_exists() -> None:
    table = DOCUMENT.read_text().split("## Errors and exit codes")[1]
    named = re.findall(r"`([A-Z]\w+)`[^|]*\|$", table, re.MULTILINE)
    assert named
    assert [name for name in named if not hasattr(errors, name)] == []
