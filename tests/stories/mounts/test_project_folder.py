"""Which folder of the host is mounted, as the host's shell answers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from jlremote.errors import NotFound, Usage
from jlremote.mounts import project_folder
from jlremote.place.host.contract import Completed, Steps
from jlremote.place.runtimes.runtime import Container
from tests.place.host.shells import through
from tests.stories.parts import FakeHost


class ThisMachine:
    """A host whose shell is that of this machine."""

    name = "lab"

    def run(self, steps: Steps, *, timeout: float = 0, limit: int = 0) -> dict[str, Completed]:
        return through("sh", steps)


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HOME", str(tmp_path))
    return tmp_path


def look(path: str, container: Container | None = None) -> project_folder.Folder:
    return project_folder._look(ThisMachine(), path, container)  # type: ignore[arg-type]


@pytest.mark.parametrize("name", ["plain", "with blank", "quote'd", "$HOME", "-n"])
def test_a_folder_below_the_home_is_found_whatever_its_name(home: Path, name: str) -> None:
    (home / name).mkdir()
    found = look(project_folder._below_home(name))
    assert (found.path, found.writable) == (str(home / name), True)


@pytest.mark.parametrize("path", ["~/missing", "~/file"])
def test_what_is_no_folder_is_not_found(home: Path, path: str) -> None:
    (home / "file").touch()
    with pytest.raises(NotFound, match="is missing or out of reach on `lab`"):
        look(path)


@pytest.mark.parametrize("told", ["-oallow_other", "project", "", "/a\n-x", "/a\x1b[2J"])
def test_what_a_host_prints_is_mounted_only_if_it_is_an_absolute_path(told: str) -> None:
    host: Any = FakeHost("lab", {"script": f"writable\n{told}\n"})
    with pytest.raises(Usage, match="no absolute path"):
        project_folder._look(host, "~/project")
