"""`jlr config`: the settings and their sources."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.conftest import Jlr

CONFIG = """
[defaults]
volume = ["/raid/me:/data"]
[hosts.dgx]
profile = "nvidia"
rm = true
"""


@pytest.fixture
def config(laptop: Path) -> Path:
    path = laptop / "config" / "jlr" / "config.toml"
    path.parent.mkdir(parents=True)
    path.write_text(CONFIG)
    return path


def test_each_value_has_its_source(jlr: Jlr, config: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JLR_VOLUME", "/scratch:/scratch")
    outcome = jlr("config", "me@dgx")
    assert outcome.code == 0
    rows = [line.split(maxsplit=2) for line in outcome.stdout.splitlines()]
    for row in (
        ["volume", "/raid/me:/data", "[defaults]"],
        ["volume", "/scratch:/scratch", "JLR_VOLUME"],
        ["rm", "yes", "[hosts.dgx]"],
        ["shm-size", "1g", "profile nvidia, built in"],
        ["log-opt", "max-size=50m", "built in"],
        ["image", "-", "-"],
    ):
        assert row in rows


def test_json_is_an_array_of_the_settled_options(jlr: Jlr, config: Path) -> None:
    found = json.loads(jlr("config", "--json", "--profile", "nvidia").stdout)
    assert {"option": "profile", "value": "nvidia", "from": "flag"} in found
    assert {"option": "init", "value": True, "from": "built in"} in found
    assert "image" not in {entry["option"] for entry in found}


def test_the_file_can_be_found_and_edited(
    jlr: Jlr, laptop: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = laptop / "config" / "jlr" / "config.toml"
    assert jlr("config", "--path").stdout == f"{path}\n"
    editor = laptop / "editor"
    editor.write_text('#!/bin/sh\necho \'[defaults]\nimgae = "x"\' >>"$1"\n')
    editor.chmod(0o755)
    monkeypatch.setenv("VISUAL", str(editor))
    outcome = jlr("config", "--edit")
    assert outcome.code == 2
    assert "line 15: unknown key `imgae`" in outcome.stderr, "a mistake is told at once"
    assert path.read_text().startswith("# Settings of jlr")


@pytest.mark.parametrize(("editor", "status"), [("/no/such/editor", 127), ("false", 1)])
def test_an_editor_that_fails_is_one_clear_error(
    jlr: Jlr, monkeypatch: pytest.MonkeyPatch, editor: str, status: int
) -> None:
    monkeypatch.setenv("VISUAL", editor)
    outcome = jlr("config", "--edit")
    assert outcome.code == 2
    assert f"error: the editor `{editor}` exited with {status}\n" in outcome.stderr
    assert "set VISUAL or EDITOR" in outcome.stderr
