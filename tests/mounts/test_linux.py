"""Programs that use a mount, read from a `/proc` that the test has made."""

from __future__ import annotations

from pathlib import Path

import pytest

from jlremote.errors import JlrError
from jlremote.mounts import system
from jlremote.mounts.system import Linux

MOUNT = "/home/ada/project"


@pytest.fixture
def processes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(system, "_PROCESSES", tmp_path)
    (tmp_path / "self").mkdir()
    return tmp_path


def process(proc: Path, pid: int, name: str = "vim", **links: str) -> Path:
    folder = proc / str(pid)
    (folder / "fd").mkdir(parents=True)
    (folder / "comm").write_text(f"{name}\n")
    for link, target in {"cwd": "/", "root": "/", "exe": "/bin/vim", **links}.items():
        (folder / link).symlink_to(target)
    return folder


@pytest.mark.parametrize("elsewhere", ["/home/ada", f"{MOUNT}2", f"/x{MOUNT}"])
def test_a_program_elsewhere_does_not_hold_it(processes: Path, elsewhere: str) -> None:
    process(processes, 11, cwd=elsewhere, exe=elsewhere)
    assert Linux().holders(MOUNT) == []


def test_a_process_that_ends_meanwhile_is_passed_over(processes: Path) -> None:
    (processes / "12").mkdir()
    assert Linux().holders(MOUNT) == []


def test_a_machine_without_fuse_is_told_how_to_get_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = tmp_path / "sshfs"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(system, "_DEVICE", tmp_path / "no-fuse")
    with pytest.raises(JlrError, match="has no FUSE") as error:
        Linux().sshfs()
    assert "modprobe fuse" in (error.value.hint or "")


def test_without_fusermount_nothing_is_unmounted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert Linux().unmount(MOUNT, lazily=False) == "`fusermount3` is not installed"
