"""`jlr config`: the settings and their sources."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.conftest import Jlr, settle

CONFIG = """
[defaults]
volume = ["/raid/me:/data"]
[hosts.dgx]
profile = "nvidia"
rm = true
"""


@pytest.fixture
def config(laptop: Path) -> Path:
    return settle(laptop, CONFIG)


def test_each_value_has_its_source(jlr: Jlr, config: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JLR_VOLUME", "/scratch:/scratch")
    shown, every = jlr("config", "me@dgx"), jlr("config", "me@dgx", "--all")
    assert (shown.code, every.code) == (0, 0)
    rows = [line.split(maxsplit=2) for line in every.stdout.splitlines()]
    short = [line.split(maxsplit=2) for line in shown.stdout.splitlines()]
    assert [row for row in rows if row[0] in ("OPTION", "volume", "rm", "shm-size")] == [
        row for row in short if row[0] in ("OPTION", "volume", "rm", "shm-size")
    ]
    assert not {"log-opt", "image"} & {row[0] for row in short}, "they are not set"
    for row in (
        ["volume", "/raid/me:/data", "[defaults]"],
        ["volume", "/scratch:/scratch", "JLR_VOLUME"],
        ["rm", "yes", "[hosts.dgx]"],
        ["shm-size", "1g", "profile nvidia, built in"],
        ["log-opt", "max-size=50m", "built in"],
        ["image", "-", "-"],
    ):
        assert row in rows


def test_json_is_an_array_of_the_settled_options(
    jlr: Jlr, config: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("JLR_PROFILE", "nvidia")
    found = json.loads(jlr("config", "--json").stdout)
    assert {"option": "profile", "value": "nvidia", "from": "JLR_PROFILE"} in found
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
    assert "unknown key `imgae` in `[defaults]`" in outcome.stderr, "a mistake is told at once"
    assert path.read_text().startswith("# Settings of jlr")


@pytest.mark.parametrize("editor", ["/no/such/editor", "false"])
def test_an_editor_that_fails_is_one_clear_error(
    jlr: Jlr, laptop: Path, monkeypatch: pytest.MonkeyPatch, editor: str
) -> None:
    monkeypatch.setenv("VISUAL", editor)
    outcome = jlr("config", "--edit")
    path = laptop / "config" / "jlr" / "config.toml"
    assert (outcome.code, "set VISUAL or EDITOR" in outcome.stderr) == (2, True)
    assert outcome.stderr.startswith(f"error: cannot edit `{path}`: {editor}: Editing failed")


FILE = """\
# mine
[defaults]   # of all
volume = [
  "/a:/a",  # ]
  "/b:/b",
]
gpus = "all" # kept until it is set

[hosts."gpu.lab.org"]
rm = true
[hosts]
box = { image = "x" }
"""


@pytest.mark.parametrize(
    ("words", "before", "after"),
    [
        (("host", "dgx"), "is set\n", 'is set\nhost = "dgx"\n'),
        (("gpus", "0,1"), 'gpus = "all" # kept until it is set\n', 'gpus = "0,1"\n'),
        (("gpus",), 'gpus = "all" # kept until it is set\n', ""),
        (
            ("volume", "/c d:/c"),
            FILE[FILE.index("volume") : FILE.index("gpus")],
            'volume = ["/c d:/c"]\n',
        ),
        (("rm", "no", "--host", "gpu.lab.org"), "rm = true\n", "rm = false\n"),
        (("port", "8900", "--host", "gpu.lab.org"), "rm = true\n", "rm = true\nport = 8900\n"),
        (("image", 'a"b\\', "--host", "p"), None, '\n[hosts.p]\nimage = "a\\"b\\\\"\n'),
    ],
)
def test_a_setting_is_changed_and_the_other_lines_stay(
    words: tuple[str, ...], before: str | None, after: str, jlr: Jlr, config: Path
) -> None:
    """The expected file is the old one with `before` replaced, or with `after` at its end."""
    config.write_text(FILE)
    outcome = jlr("config", "set", *words)
    assert (outcome.code, outcome.stderr) == (0, "")
    assert words[0] in outcome.stdout
    assert config.read_text() == (FILE.replace(before, after) if before else FILE + after)


@pytest.mark.parametrize(
    ("words", "code", "told"),
    [
        (("imgae", "x"), 2, "did you mean `image`?"),
        (("defaults.imgae", "x"), 2, "did you mean `image`?"),
        (("hosts.dgx.image", "x"), 2, "did you mean `image`?"),
        (("port", "many"), 2, "must be a number from 1 to 65535"),
        (("runtime", "dcoker"), 2, "did you mean `docker`?"),
        (("gpus", "some"), 2, "`some` is not a GPU selection"),
        (("gpus", "0", "1"), 2, "`gpus` takes one value"),
        (("host", "x", "--host", "dgx"), 2, "unknown key `host` in `[hosts.dgx]`"),
        (("image", "y", "--host", "box"), 1, "without changing other lines"),
        ((), 2, "usage: jlr config set OPTION [VALUE]..."),
    ],
)
def test_a_setting_that_cannot_be_leaves_the_file_as_it_was(
    words: tuple[str, ...], code: int, told: str, jlr: Jlr, config: Path
) -> None:
    config.write_text(FILE)
    outcome = jlr("config", "set", *words)
    assert (outcome.code, told in outcome.stderr) == (code, True), outcome
    assert config.read_text() == FILE


def test_the_first_setting_makes_the_file(jlr: Jlr, laptop: Path) -> None:
    made = laptop / "config" / "jlr" / "config.toml"
    told = jlr("config", "set", "host", "dgx").stdout
    assert told == f"host = dgx in [defaults] of {made}\n"
    assert made.read_text() == '[defaults]\nhost = "dgx"\n'
    assert ["host", "dgx", "[defaults]"] in map(str.split, jlr("config").stdout.splitlines())
