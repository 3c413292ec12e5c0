"""The verdict at the end of `tests/run`, from records as pytest writes them."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests import verdict

FAILURE = '<failure message="assert 0"/>'


@pytest.fixture(autouse=True)
def not_ci(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CI", raising=False)


class Record:
    """A file as `--junitxml` makes it."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.cases = ""
        self.add("a.test_b", "test_fine")

    def add(self, module: str, name: str, inner: str = "") -> None:
        self.cases += f'<testcase classname="tests.{module}" name="{name}">{inner}</testcase>'
        self.path.write_text(f"<testsuites><testsuite>{self.cases}</testsuite></testsuites>")


@pytest.fixture
def first(tmp_path: Path) -> Record:
    return Record(tmp_path / "first.xml")


@pytest.fixture
def again(tmp_path: Path) -> Record:
    return Record(tmp_path / "again.xml")


def run(*words: str | Path, monkeypatch: pytest.MonkeyPatch) -> int:
    monkeypatch.setattr(sys, "argv", ["verdict", *map(str, words)])
    return verdict.main()


@pytest.mark.lab  # it takes a second
def test_pytests_own_record_is_understood(tmp_path: Path) -> None:
    (tmp_path / "test_it.py").write_text(
        "import pytest\n"
        "def test_yes(): pass\n"
        "@pytest.mark.parametrize('n', ['a[b'])\n"
        "def test_no(n): assert 0\n"
        "def test_not_here(): pytest.skip('nothing')\n"
    )
    record = tmp_path / "record.xml"
    (tmp_path / "pytest.ini").write_text("[pytest]\n")  # else it looks at all of /tmp
    options = ("-q", "-p", "no:cacheprovider", f"--junitxml={record}")
    argv = (sys.executable, "-m", "pytest", *options, str(tmp_path))
    alone = {**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}  # they take most of its time
    subprocess.run(argv, env=alone, stdout=subprocess.DEVNULL, check=False)
    assert verdict.outcomes(record) == {
        "test_it::test_yes": "passed",
        "test_it::test_no[a[b]": "failed",
        "test_it::test_not_here": "skipped",
    }


@pytest.mark.parametrize(("count", "status"), [(0, 0), (2, 0), (3, 1)])
def test_more_than_two_flaky_tests_fail_the_run_and_all_are_named(
    first: Record,
    again: Record,
    count: int,
    status: int,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    for number in range(count):
        first.add("a.test_b", f"test_{number}", FAILURE)
        again.add("a.test_b", f"test_{number}")
    assert run("--part", first.path, again.path, monkeypatch=monkeypatch) == status
    printed = capsys.readouterr().out
    assert printed.count("flaky: a/test_b::test_") == count


ROWS = {"A1": ["a/test_b::test_one"]}


@pytest.mark.parametrize(
    ("results", "part", "problem"),
    [
        ({"a/test_b::test_one": "passed"}, False, None),
        ({"a/test_b::test_one[x]": "passed", "a/test_b::test_one[y]": "skipped"}, False, None),
        ({"a/test_b::test_one[x]": "passed", "a/test_b::test_one[y]": "failed"}, True, "failed"),
        ({"a/test_b::test_one": "skipped"}, True, "was skipped"),
        ({"a/test_b::test_one_more": "passed"}, False, "did not run"),
        ({"a/test_b::test_one_more": "passed"}, True, None),
    ],
)
def test_a_row_is_shown_by_tests_that_ran_and_passed(
    results: dict[str, str], part: bool, problem: str | None
) -> None:
    told = [] if problem is None else [f"A1: a/test_b::test_one {problem}"]
    assert verdict.unshown(ROWS, results, part=part) == told


def test_a_whole_run_without_a_rows_test_fails(
    first: Record, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert run(first.path, monkeypatch=monkeypatch) == 1
