"""With CI=true a skipped test fails, unless its marker says that it is optional."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from tests.rows import REPOSITORY
from tests.verdict import outcomes

SAMPLE = """\
import pytest

def test_calls_skip(): pytest.skip("no sshd")

@pytest.mark.skipif(True, reason="no zsh")
def test_is_marked(): pass

@pytest.fixture
def part(): pytest.skip("no docker")

def test_needs_a_part(part): pass

@pytest.mark.hardware
@pytest.mark.skipif(True, reason="no GPU")
def test_needs_a_gpu(): pass

@pytest.mark.long
def test_takes_minutes(): pass

@pytest.mark.xfail
def test_is_expected_to_fail(): assert 0

def test_passes(): pass
"""


def test_a_skip_fails_with_ci_unless_it_is_optional(tmp_path: Path) -> None:
    (tmp_path / "test_sample.py").write_text(SAMPLE)
    record = tmp_path / "record.xml"
    options = ("-q", "-p", "tests.conftest", "-p", "no:cacheprovider", f"--junitxml={record}")
    argv = (sys.executable, "-m", "pytest", *options, f"--rootdir={tmp_path}", str(tmp_path))
    environment = {name: text for name, text in os.environ.items() if name != "JLR_LONG"}
    subprocess.run(
        argv, cwd=REPOSITORY, env=environment | {"CI": "true"}, capture_output=True, check=False
    )
    found = {name.partition("::test_")[2]: outcome for name, outcome in outcomes(record).items()}
    assert found == {
        "calls_skip": "failed",
        "is_marked": "failed",
        "needs_a_part": "failed",
        "needs_a_gpu": "skipped",
        "takes_minutes": "skipped",
        "is_expected_to_fail": "skipped",
        "passes": "passed",
    }
