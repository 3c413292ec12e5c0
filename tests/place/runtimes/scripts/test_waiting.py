"""A container's main process and what later scripts take from it, in shells of this machine."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from jlremote.place.runtimes.scripts import waiting
from tests.place.host.shells import run_sh

NOTE = "/tmp/.jlr-waits-$(uname -n)"


@contextmanager
def main_process(folder: Path, script: str = "", **variables: str) -> Iterator[Path]:
    """Run a container's main command; yield the file that has its id."""
    note = folder / "note"
    argv = tuple(word.replace(NOTE, str(note)) for word in waiting.command(f"{script}echo ready\n"))
    environment = {**os.environ, **variables}
    with subprocess.Popen(argv, stdout=subprocess.PIPE, env=environment, text=True) as process:
        assert process.stdout is not None
        try:
            assert process.stdout.readline() == "ready\n"
            yield note
        finally:
            process.kill()


def here(script: str, note: Path) -> str:
    return script.replace(NOTE, str(note))


def test_a_command_run_meanwhile_may_end_the_waiting(tmp_path: Path) -> None:
    script = here(waiting.until_ready("exit 9"), tmp_path / "note")
    assert run_sh("sh", script).returncode == 9


def test_another_user_s_main_process_is_told_apart(tmp_path: Path) -> None:
    if os.getuid() != 0:
        pytest.skip("giving a file away needs root")
    with main_process(tmp_path) as note:
        os.chown(note, 65534, 65534)
        script = here(waiting.until_ready(":"), note)
        assert run_sh("sh", script).returncode == waiting.ANOTHER_USER


def test_the_folder_is_taken_over_and_no_variable_of_the_process_itself(tmp_path: Path) -> None:
    with main_process(tmp_path, PWD="/elsewhere", **{"BASH_FUNC_x%%": "() { :; }"}) as note:
        script = here(waiting.beside("pwd; echo $?\n"), note)
        done = run_sh("bash", f"cd {tmp_path}\n{script}")
        assert (done.stdout, done.stderr) == (f"{Path.cwd()}\n0\n", "")
