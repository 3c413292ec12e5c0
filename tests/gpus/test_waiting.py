"""The program that waits for GPUs on the host: its file, and the words that stand for GPUs."""

from __future__ import annotations

import ast
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from jlremote.gpus.choice import Chosen
from jlremote.gpus.waiting.placeholders import promised, with_gpus
from jlremote.place.host import gpu_waiter
from tests.place.host.shells import run_sh
from tests.sources import PACKAGE, ours


def test_its_modules_have_no_newer_syntax_than_the_oldest_python() -> None:
    needed, left = set[str](), {gpu_waiter.PROGRAM}
    while left:
        needed |= left
        left = {other for module in left for other in ours(module)} - needed
    for module in needed:
        text = (PACKAGE / f"{module.partition('.')[2].replace('.', '/')}.py").read_text("utf-8")
        for node in ast.walk(ast.parse(text, feature_version=gpu_waiter.OLDEST)):
            # `list[int]()` is of Python 3.9.
            assert not (isinstance(node, ast.Call) and isinstance(node.func, ast.Subscript)), module


@pytest.mark.skipif(sys.platform != "linux", reason="it runs on hosts")
def test_the_program_starts_in_each_python_that_is_here(tmp_path: Path) -> None:
    put = f"directory={tmp_path}\n{gpu_waiter.FIND_PYTHON}{gpu_waiter.put({'name': 'x'})}"
    assert run_sh("sh", put).returncode == 0
    assert (tmp_path / ".wait").read_text() == '{"name": "x"}\n'
    found = [f"python3.{minor}" for minor in range(gpu_waiter.OLDEST[1], 15)]
    for python in filter(shutil.which, ["python3", *found]):
        if subprocess.run([python, "-c", ""], check=False, capture_output=True).returncode:
            continue  # pyenv's stand-in for one that is not installed
        argv = [python, "-I", str(tmp_path / ".waiter"), str(tmp_path / "none")]
        done = subprocess.run(argv, capture_output=True, text=True, timeout=60, check=False)
        assert "none/.wait" in done.stderr, (python, done)


@pytest.mark.skipif(sys.platform != "linux", reason="it runs on hosts")
def test_a_host_without_python_is_told_apart() -> None:
    assert run_sh("sh", f"PATH=/none\n{gpu_waiter.FIND_PYTHON}").returncode == gpu_waiter.NO_PYTHON


def test_words_stand_for_gpus_until_they_are_chosen() -> None:
    words = promised(2)
    chosen = Chosen(("GPU-0", "MIG-1"), ("0", "1:2"))
    text = f"device={','.join(words.uuids)} {','.join(words.places)}"
    assert with_gpus(text, chosen) == "device=GPU-0,MIG-1 0,1:2"
