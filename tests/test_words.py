"""The code and the pages use plain words, and a class name has one meaning."""

from __future__ import annotations

import ast
import re
from collections import Counter
from pathlib import Path

REPOSITORY = Path(__file__).parents[1]
MODULES = sorted((REPOSITORY / "jlremote").rglob("*.py"))
PAGES = [*REPOSITORY.glob("*.md"), *sorted((REPOSITORY / "docs").rglob("*.md"))]
RIDDLES = re.compile(r"(?i)\b(whoever|whomever|whom|nobody|somebody|everybody|anybody)\b")


def test_texts_name_their_subjects() -> None:
    found = [
        f"{path.relative_to(REPOSITORY)}:{number}: {word[0]}"
        for path in (*MODULES, *PAGES)
        for number, line in enumerate(path.read_text("utf-8").splitlines(), 1)
        if (word := RIDDLES.search(line))
    ]
    assert found == []


def test_no_class_name_stands_twice() -> None:
    trees = (ast.parse(path.read_text("utf-8")) for path in MODULES)
    classes = (n.name for tree in trees for n in ast.walk(tree) if isinstance(n, ast.ClassDef))
    assert [name for name, count in Counter(classes).items() if count > 1] == []


def test_hints_name_what_they_stop() -> None:
    bare = re.compile(r"hint=[^\n]*`jlr (stop|restart|rmi|unmount)(?: --\w+)*`")
    found = [path.name for path in MODULES if bare.search(path.read_text("utf-8"))]
    assert found == []
