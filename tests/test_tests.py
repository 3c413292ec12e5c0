"""Every test can fail by more than an error: it asserts something, itself or by a helper."""

from __future__ import annotations

import ast
from pathlib import Path

TESTS = Path(__file__).parent
FAILS = {"raises", "fail", "warns", "expect", "expect_exact"}  # pytest's and pexpect's
TREES = {path: ast.parse(path.read_text("utf-8")) for path in sorted(TESTS.rglob("*.py"))}


def calls(function: ast.AST) -> set[str]:
    """Return the names of all functions and methods that a function calls."""
    called = {node.func for node in ast.walk(function) if isinstance(node, ast.Call)}
    return {node.attr for node in called if isinstance(node, ast.Attribute)} | {
        node.id for node in called if isinstance(node, ast.Name)
    }


def asserts(function: ast.AST) -> bool:
    """Return whether a function can fail a test without the help of another one."""
    has_assert = any(isinstance(node, ast.Assert | ast.Raise) for node in ast.walk(function))
    return has_assert or bool(calls(function) & FAILS)


def helpers_that_assert() -> set[str]:
    """Return the names of the tests' own functions that assert, or call one that does."""
    functions = [
        node
        for tree in TREES.values()
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef)
    ]
    found = {function.name for function in functions if asserts(function)}
    called = [(function.name, calls(function)) for function in functions]
    while more := {name for name, names in called if names & found} - found:
        found |= more
    return found


def test_every_test_asserts_something() -> None:
    helpers = helpers_that_assert()
    idle = [
        f"{path.relative_to(TESTS)}:{function.lineno}: {function.name}"
        for path, tree in TREES.items()
        for function in tree.body
        if isinstance(function, ast.FunctionDef) and function.name.startswith("test_")
        if not asserts(function) and not calls(function) & helpers
    ]
    assert idle == []


def test_a_test_that_only_does_not_raise_is_found() -> None:
    silent = ast.parse("def test_x(): work()").body[0]
    assert not asserts(silent)
    assert calls(silent) == {"work"}
    assert asserts(ast.parse("def test_x():\n with pytest.raises(E): work()").body[0])
