"""The last lines of `tests/run`: flaky tests, and rows of docs/ that no test showed.

`python -m tests.verdict [--part] FIRST [AGAIN]` reads what `pytest --junitxml` recorded: of the
run, and of the second run of the tests that had failed. It exits with 1 where it finds fault.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path
from xml.etree import ElementTree

from tests.rows import PAGES, named_tests

MOST_FLAKY = 2
Outcomes = dict[str, str]


def outcomes(record: Path) -> Outcomes:
    """Return "passed", "failed" or "skipped" for each test, as `folder/test_file::name[values]`.

    A test whose teardown failed is recorded twice, and has failed.
    """
    found: Outcomes = {}
    for case in ElementTree.parse(record).iter("testcase"):
        file = case.get("classname", "").removeprefix("tests.").replace(".", "/")
        name = f"{file}::{case.get('name')}"
        marks = {child.tag for child in case}
        failed = marks & {"failure", "error"} or found.get(name) == "failed"
        found[name] = "failed" if failed else "skipped" if "skipped" in marks else "passed"
    return found


def flaky(first: Outcomes, again: Outcomes) -> list[str]:
    """Return the tests that failed beside others and passed alone."""
    return [
        name
        for name, outcome in first.items()
        if outcome == "failed" and again.get(name) == "passed"
    ]


def unshown(rows: Mapping[str, list[str]], results: Outcomes, *, part: bool) -> list[str]:
    """Return a line for each test that a row names and that did not pass; in a part, that ran."""
    ended = defaultdict(set)
    for name, outcome in results.items():
        ended[name.partition("[")[0]].add(outcome)
    return [
        f"{row}: {test} {problem}"
        for row, tests in rows.items()
        for test in tests
        if (problem := _problem(ended[test], part=part))
    ]


def _problem(ended: set[str], *, part: bool) -> str | None:
    if not ended:
        return None if part else "did not run"
    if "failed" in ended:
        return "failed"
    return None if "passed" in ended else "was skipped"


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.verdict", description=__doc__)
    parser.add_argument("--part", action="store_true", help="only some tests were selected")
    parser.add_argument("first", type=Path)
    parser.add_argument("again", type=Path, nargs="?")
    given = parser.parse_args()
    first = outcomes(given.first)
    again = outcomes(given.again) if given.again else {}
    unsteady = flaky(first, again)
    missing = [
        f"docs/{page}.md: {line}"
        for page in PAGES
        for line in unshown(named_tests(page), first | again, part=given.part)
    ]
    for name in unsteady:
        print(f"flaky: {name} failed beside other tests and passed alone")
    for line in missing:
        print(line)
    if len(unsteady) > MOST_FLAKY:
        print(f"{len(unsteady)} flaky tests are more than the {MOST_FLAKY} that are let through")
    skipped = os.environ.get("CI") != "true" and all("skipped" in line for line in missing)
    return int(len(unsteady) > MOST_FLAKY or (bool(missing) and not skipped))


if __name__ == "__main__":
    sys.exit(main())
