"""The demo's notebook is told apart from one that a person wrote."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from jlremote.demo.own_files import NOTEBOOK, is_as_made, notebook


@pytest.mark.parametrize(
    ("name", "added", "as_made"),
    [(NOTEBOOK, None, True), (NOTEBOOK, "", True), (NOTEBOOK, "6 * 7", False)],
)
def test_a_notebook_with_own_words_is_the_persons(
    tmp_path: Path, name: str, added: str | None, as_made: bool
) -> None:
    saved = json.loads(notebook())
    for cell in saved["cells"]:
        cell["source"] = cell["source"].splitlines(keepends=True)  # as JupyterLab does
    if added is not None:
        saved["cells"].append({"cell_type": "code", "source": [added], "outputs": []})
    (tmp_path / name).write_text(json.dumps(saved))
    assert is_as_made(tmp_path / name) is as_made


@pytest.mark.parametrize("text", ["", "[]", '{"cells": [1]}'])
def test_a_file_of_its_name_that_is_no_notebook_is_the_persons(tmp_path: Path, text: str) -> None:
    (tmp_path / NOTEBOOK).write_text(text)
    assert not is_as_made(tmp_path / NOTEBOOK)
