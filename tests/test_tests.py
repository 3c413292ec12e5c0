"""Every test can fail by more than an error: it asserts something, itself or by a helper."""

from __future__ import annotations

import ast
import re
from pathlib import Path

TESTS = Path(__file__).parent
FAILS = {"raises", "fail", "warns", "expect", "expect_exact"}  # pytest's and pexpect's
IMPORTS_A_TEST = re.compile(
    r"^\s*(?:from|import) tests\S*(?:\.| import (?:.*, )?)test_", re.MULTILINE
)


class Function:
    """A function of the tests.

    Attributes:
        name: its name.
        calls: the names of all functions and methods that it calls.
        asserts: whether it can fail a test without the help of another function of the tests.
    """

    def __init__(self, node: ast.FunctionDef) -> None:
        self.name = node.name
        parts = list(ast.walk(node))
        called = [part.func for part in parts if isinstance(part, ast.Call)]
        self.calls = {func.attr for func in called if isinstance(func, ast.Attribute)}
        self.calls |= {func.id for func in called if isinstance(func, ast.Name)}
        own = any(isinstance(part, ast.Assert | ast.Raise) for part in parts)
        self.asserts = own or bool(self.calls & FAILS)


def functions() -> list[tuple[str, Function]]:
    """Return every function of the tests with its place."""
    return [
        (f"{path.relative_to(TESTS)}:{node.lineno}", Function(node))
        for path in sorted(TESTS.rglob("*.py"))
        for node in ast.walk(ast.parse(path.read_text("utf-8")))
        if isinstance(node, ast.FunctionDef)
    ]


def asserting(known: list[Function]) -> set[str]:
    """Return the names of functions that assert, or that call one that does."""
    found = {function.name for function in known if function.asserts}
    while more := {function.name for function in known if function.calls & found} - found:
        found |= more
    return found


def test_every_test_asserts_something() -> None:
    placed = functions()
    helpers = asserting([function for _, function in placed if function.name[:5] != "test_"])
    idle = [
        f"{place}: {function.name}"
        for place, function in placed
        if function.name.startswith("test_")
        if not function.asserts and not function.calls & helpers
    ]
    assert idle == []


def test_no_test_module_imports_from_another() -> None:
    """What two of them need is in the folder's parts.py or conftest.py, or in tests/lab."""
    sources = {path: path.read_text("utf-8") for path in sorted(TESTS.rglob("*.py"))}
    wrong = {str(path) for path, text in sources.items() if IMPORTS_A_TEST.search(text)}
    assert wrong == set()


def parsed(text: str) -> Function:
    node = ast.parse(text).body[0]
    assert isinstance(node, ast.FunctionDef)
    return Function(node)


def test_a_test_that_only_does_not_raise_is_found() -> None:
    silent, helper = parsed("def test_x(): work()"), parsed("def work(): assert 1")
    assert (silent.asserts, silent.calls) == (False, {"work"})
    assert parsed("def test_x():\n with pytest.raises(E): work()").asserts
    assert asserting([silent]) == set()
    assert asserting([silent, helper]) == {"test_x", "work"}
