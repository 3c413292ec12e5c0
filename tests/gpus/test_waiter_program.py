"""The program that waits for GPUs on the host: its file, and the words that stand for GPUs."""

from __future__ import annotations

import ast
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from jlremote.place.host.kept_jobs import WAITERS_PROGRAM, WAITERS_PYTHON
from jlremote.remote import sending
from tests.sources import PACKAGE, ours


def test_its_modules_have_no_newer_syntax_than_the_oldest_python() -> None:
    needed, left = set[str](), {WAITERS_PROGRAM}
    while left:
        needed |= left
        left = {other for module in left for other in ours(module)} - needed
    for module in needed:
        text = (PACKAGE / f"{module.partition('.')[2].replace('.', '/')}.py").read_text("utf-8")
        for node in ast.walk(ast.parse(text, feature_version=WAITERS_PYTHON)):
            # `list[int]()` is of Python 3.9.
            assert not (isinstance(node, ast.Call) and isinstance(node.func, ast.Subscript)), module


@pytest.mark.lab
@pytest.mark.skipif(sys.platform != "linux", reason="it runs on hosts")
def test_the_program_starts_in_each_python_that_is_here(tmp_path: Path) -> None:
    program = tmp_path / "waiter"
    program.write_text(sending.program(WAITERS_PROGRAM), "ascii")
    found = [f"python3.{minor}" for minor in range(WAITERS_PYTHON[1], 15)]
    for python in filter(shutil.which, ["python3", *found]):
        if subprocess.run([python, "-c", ""], check=False, capture_output=True).returncode:
            continue  # pyenv's stand-in for one that is not installed
        argv = [python, "-I", str(program), str(tmp_path / "none")]
        done = subprocess.run(argv, capture_output=True, text=True, timeout=60, check=False)
        assert "none/.wait" in done.stderr, (python, done)
