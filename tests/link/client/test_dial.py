"""The start of a link's process."""

from __future__ import annotations

import subprocess
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from jlremote.link.client import dial


def test_a_free_threaded_python_runs_the_link_with_its_lock(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    commands: list[tuple[str, ...]] = []
    monkeypatch.setattr(subprocess, "Popen", lambda argv, **_options: commands.append(argv))
    files: Any = SimpleNamespace(host="dgx", ssh_config=None, log=tmp_path / "log")
    dial._spawn(files)
    (command,) = commands
    options = command[1 : command.index("-m")]
    assert options == ("-P", "-X", "gil=1")
    assert command[-1] == "dgx"
