"""A command in a container ends as it would by itself, whether its orphans are adopted or not."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from jlremote.place.host.kept_jobs import adopting
from jlremote.place.host.shell_text import command_line
from tests.place.host.shells import SHELLS

ADOPT = adopting()
WITHOUT_PYTHON = ADOPT.replace('[ -z "$jlr_python" ]', "true")


@pytest.mark.lab
@pytest.mark.parametrize("script", [ADOPT, WITHOUT_PYTHON], ids=["adopting", "without Python"])
@pytest.mark.parametrize("shell", SHELLS)
@pytest.mark.parametrize(
    ("argv", "status", "stderr"),
    [
        (("sh", "-c", "echo said >&2; exit 7"), 7, "said\n"),
        (("sh", "-c", "kill -9 $$"), 128 + 9, ""),
        (("sh", "-c", "kill -TERM 0; sleep 10"), 128 + 15, ""),
        (("/no/such/program",), 127, None),
        (("/etc/passwd",), 126, None),
    ],
)
def test_a_command_ends_as_by_itself(
    shell: str, script: str, argv: tuple[str, ...], status: int, stderr: str | None
) -> None:
    done = run(shell, script, argv)
    assert (done.returncode if done.returncode >= 0 else 128 - done.returncode) == status
    assert stderr is None or done.stderr == stderr
    assert "raceback" not in done.stderr


def test_the_program_that_waits_becomes_the_parent_of_an_orphan(tmp_path: Path) -> None:
    until = "while [ ! -e {} ]; do sleep 0.05; done".format
    # The orphan tells its parent once that is another one than at first.
    orphan = (
        f"first=$PPID; cd {tmp_path}; : >begun; while p=$(ps -o ppid= -p $$); [ $p = $first ]; "
        "do sleep 0.05; done; echo $p >told; : >over"
    )
    parent = f"sh -c {command_line([orphan])} & {until(tmp_path / 'begun')}"
    main = f"sh -c {command_line([parent])}; ps -o ppid= -p $$; {until(tmp_path / 'over')}"
    adopter = run("sh", ADOPT, ("sh", "-c", main)).stdout.strip()
    assert (tmp_path / "told").read_text() == f"{adopter}\n"


def run(shell: str, script: str, argv: tuple[str, ...]) -> subprocess.CompletedProcess[str]:
    """Run a script with arguments, as an engine's `exec` does: in a session of its own."""
    words = (shell, "-c", script, "sh", *argv)
    return subprocess.run(words, start_new_session=True, capture_output=True, text=True, timeout=30)
