"""How the JupyterLab of this laptop is started."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from jlremote.kernels import lab


@pytest.mark.lab
def test_a_module_in_the_folder_is_not_imported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The page may have written it."""
    monkeypatch.setattr("shutil.which", lambda _: None)
    for name in ("jupyterlab", "tornado", "json5"):
        (tmp_path / f"{name}.py").write_text("raise SystemExit('code of the folder')")
    command = (*lab._jupyterlab(), "--version")
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
    assert int(done.stdout.partition(".")[0]) >= 4
