"""The package's own sources, as the guard tests read them."""

from __future__ import annotations

import ast
import gc
import os
import re
import subprocess
import sys
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path

# Modules that run on the far side, not on the laptop.
FAR = re.compile(
    r".*_program|remote\.(?!sending).*|jupyter\.in_server\..*|jupyter\.recording\..*|jupyter\.configuration"
)


def here() -> Iterator[tuple[str, ast.Module]]:
    """Yield the modules that run on the laptop."""
    for module, tree in modules().items():
        name = module.removeprefix("jlremote.")
        if not FAR.fullmatch(name):
            yield name, tree


def calls() -> Iterator[tuple[str, ast.Call]]:
    """Yield the calls in the modules that run on the laptop."""
    for name, tree in here():
        yield from ((name, node) for node in nodes(tree) if isinstance(node, ast.Call))


def python(script: str, *argv: str, **more: str) -> subprocess.CompletedProcess[str]:
    """Run a script in an interpreter of its own, with more variables."""
    words, environment = (sys.executable, "-c", script, *argv), os.environ | more
    return subprocess.run(words, env=environment, capture_output=True, text=True, timeout=120)


def known(module: str, table: Iterable[str]) -> bool:
    """Return whether a module, or its folder, is in a table."""
    return any(module == each or module.startswith(f"{each}.") for each in table)


PACKAGE = Path(__file__).resolve().parent.parent / "jlremote"


@cache
def parsed(path: Path) -> ast.Module:
    """Return a module as it was parsed once; nobody may change it."""
    return ast.parse(path.read_text("utf-8"), str(path))


@cache
def nodes(tree: ast.AST) -> tuple[ast.AST, ...]:
    """Return all nodes of a module, of which the guards ask again and again."""
    return tuple(ast.walk(tree))


@cache
def modules() -> dict[str, ast.Module]:
    """Return all modules of the package by name."""
    found = {}
    for path in PACKAGE.rglob("*.py"):
        parts = path.relative_to(PACKAGE.parent).with_suffix("").parts
        name = ".".join(part for part in parts if part != "__init__")
        found[name] = parsed(path)
    gc.freeze()  # no search for garbage need look at half a million nodes again
    return found


def imports(tree: ast.AST, *, module: str) -> Iterator[str]:
    """Return the full names of all that a module imports, in functions and for types too."""
    for node in nodes(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{module} imports relatively"
            assert node.module
            for alias in node.names:
                inner = f"{node.module}.{alias.name}"
                yield inner if inner in modules() else node.module


@cache
def ours(module: str) -> set[str]:
    """Return the modules of ours that `module` imports."""
    found = set(imports(modules()[module], module=module)) & modules().keys()
    return found - {module}
