"""A script that is on this machine only: its job fails, and the option that sends it is told."""

from __future__ import annotations

from pathlib import Path

import pytest

from jlremote.jobs import command_file
from tests.lab.containers import Container, ContainerFactory
from tests.lab.laptop import PROGRAMS, Laptop
from tests.lab.programs import Result


def typed(laptop: Laptop, line: str) -> Result:
    """Run a line that is pasted into a shell, in the folder `proj` of the laptop."""
    return laptop.run("sh", "-c", f"cd proj && PATH={PROGRAMS}:$PATH && {line}")


@pytest.fixture
def script(owner: Laptop, containers: ContainerFactory) -> str:
    """The name of a script in the folder `proj` of the laptop, which no host has."""
    name = f"{containers.name()}.sh"
    folder = owner.folder / "home" / "proj"
    folder.mkdir(exist_ok=True)
    (folder / name).write_text(
        f"echo trained in $PWD; mkdir -p made; echo {name} >made/{name}\n", encoding="utf-8"
    )
    return name


@pytest.mark.parametrize("where", ["--runtime none", "--in {inside}", "--image lab/plain"])
def test_a_script_that_is_only_here_is_named_once_it_is_not_found(
    owner: Laptop, inside: Container, script: str, where: str
) -> None:
    line = f"jlr run lab {where.format(inside=inside.name)}"
    failed = typed(owner, f"{line} --rm -- sh {script}")
    assert failed.status in (2, 127), failed
    assert f"`{script}` is a file of this machine: `--sync .` sends " in failed.stderr
    (owner.folder / "home" / "proj" / "made").mkdir(exist_ok=True)
    ran = typed(owner, f"{line} --sync . --back 'made/*' --rm -- sh {script}")
    assert ran.stdout.startswith("trained in /"), ran
    assert (owner.folder / "home" / "proj" / "made" / script).read_text() == f"{script}\n"
    again = typed(owner, f"{line} --sync=. --rm -- sh {script}")
    assert again.stdout == ran.stdout
    assert "sent 1 files" not in again.stderr, "what came back is known there"
    assert "is a file of this machine" not in again.stderr


@pytest.mark.parametrize("where", ["--runtime none", "--in none-such", "--slurm"])
def test_what_gets_no_terminal_or_stdin_is_refused_before_a_folder_is_sent(
    owner: Laptop, script: str, where: str
) -> None:
    refused = typed(owner, f"jlr run lab {where} -i --sync . -- sh {script}")
    assert refused.status == 2, refused
    assert "stdin" in refused.stderr
    assert "Sync" not in refused.stderr


@pytest.mark.parametrize(
    ("command", "file"),
    [
        ("python train.py", "train.py"),
        ("python3.11 -u pkg/train.py gen.py", "pkg/train.py"),
        ("./train.py", "./train.py"),
        ("python gone.py train.py", None),  # which may be what it writes
        ("python -m pytest train.py", None),
        ("train.py", None),  # a program of the PATH there
        ("cat train.py", None),
    ],
)
def test_only_what_a_command_runs_counts(
    command: str, file: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("train.py", "gen.py", "pkg/train.py"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
    note = command_file.not_sent(command.split(), (0, 2))
    assert (note and note.split("`")[1]) == file
