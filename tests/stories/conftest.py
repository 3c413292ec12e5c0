"""Records of a test's own."""

from __future__ import annotations

from pathlib import Path

import pytest


@pytest.fixture(autouse=True)
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let records be kept in a folder of the test's."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
