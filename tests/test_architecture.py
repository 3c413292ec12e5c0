"""ARCHITECTURE.md is short and names only modules that exist; each folder names its own."""

from __future__ import annotations

import ast
import re
from collections import Counter
from pathlib import Path

REPOSITORY = Path(__file__).parents[1]
PAGE = (REPOSITORY / "ARCHITECTURE.md").read_text("utf-8")
ROOMS = [path.parent for path in (REPOSITORY / "jlremote").rglob("*/__init__.py")]
FILES = {
    path.relative_to(REPOSITORY).as_posix()
    for folder in ("jlremote", "tests")
    for path in (REPOSITORY / folder).rglob("*.py")
}


def test_the_page_is_short() -> None:
    assert len(PAGE.splitlines()) <= 160


def test_every_module_that_the_page_names_exists() -> None:
    named = set(re.findall(r"`([\w/]+\.py)`", PAGE))
    assert len(named) > 20
    assert {
        name for name in named if not any(f"/{file}".endswith(f"/{name}") for file in FILES)
    } == set()


def test_the_map_shows_every_package() -> None:
    packages = {path.parent.name for path in (REPOSITORY / "jlremote").glob("*/__init__.py")}
    shown = set(re.findall(r"(\w+)/", PAGE[PAGE.index("## The map") : PAGE.index("## The ladder")]))
    assert packages <= shown


def test_the_docstring_of_a_folder_names_its_modules_and_folders() -> None:
    missing = {}
    for room in ROOMS:
        text = ast.get_docstring(ast.parse((room / "__init__.py").read_text("utf-8"))) or ""
        said = set(re.findall(r"\w+", " ".join(re.findall(r"`([^`]+)`", text))))
        folders = {path.name for path in ROOMS if path.parent == room}
        modules = {path.stem for path in room.glob("*.py") if not path.stem.startswith("__")}
        if left := (folders | modules) - said:
            missing[room.name] = left
    assert missing == {}


def test_no_folder_has_more_than_fourteen_modules() -> None:
    sizes = {room: len(list(room.glob("*.py"))) - 1 for room in ROOMS}
    assert {room.name: size for room, size in sizes.items() if size > 14} == {}


def test_few_file_names_stand_twice() -> None:
    names = Counter(path.name for room in ROOMS for path in room.glob("*.py"))
    assert len([name for name, count in names.items() if count > 1 and name[0] != "_"]) <= 9
