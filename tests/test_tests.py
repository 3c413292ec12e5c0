"""Rules for the tests themselves: each can fail, and none needs another test module."""

from __future__ import annotations

import ast
import re
from functools import cache, cached_property

from tests.rows import REPOSITORY

TESTS = REPOSITORY / "tests"
# Calls of libraries that fail a test: pytest's, pexpect's and playwright's.
FAIL = {"pytest.raises", "pytest.fail", "pytest.warns", "expect", "expect_exact"}
# Where time itself is the subject, or the program waits that a test gives to another machine.
SLEEP = {
    *("adversity/arp_program", "adversity/test_faults", "adversity/test_interruptions"),
    *("gpus/test_pictures", "jupyter/test_resumption"),
    *("lab/line", "lab/place", "lab/programs", "link/test_drops", "login/test_passwords"),
    *("mounts/test_sleep", "outages/parts", "outages/test_engine_restart"),
    *("outages/test_outages", "outages/test_output", "outages/test_page"),
    *("sessions/test_failed_start", "ssh/forward/parts"),
}


def asserts(function: ast.FunctionDef) -> bool:
    """Return whether a function or a method can fail, as far as its own text tells."""
    return any(
        isinstance(part, ast.Assert | ast.Raise)
        or (isinstance(part, ast.Call) and bool(names_of(part.func) & FAIL))
        for part in ast.walk(function)
    )


def calls(function: ast.FunctionDef) -> set[str]:
    """Return the names of what it calls, a method's as `.name`."""
    called = [part.func for part in ast.walk(function) if isinstance(part, ast.Call)]
    methods = {f".{func.attr}" for func in called if isinstance(func, ast.Attribute)}
    return methods | {func.id for func in called if isinstance(func, ast.Name)}


def names_of(node: ast.AST) -> set[str]:
    """Return the name of a node: of an attribute also with what it is one of, as `time.sleep`."""
    if isinstance(node, ast.Attribute):
        owner = f"{node.value.id}." if isinstance(node.value, ast.Name) else ""
        return {node.attr, owner + node.attr}
    if isinstance(node, ast.FunctionDef):
        return {node.name}
    return {node.id} if isinstance(node, ast.Name) else set()


class Module:
    """What a module of the tests defines, imports and names."""

    def __init__(self, text: str) -> None:
        self.functions: dict[str, ast.FunctionDef] = {}
        self.classes: dict[str, dict[str, ast.FunctionDef]] = {}
        self.imported: dict[str, tuple[str, str]] = {}
        self._text = text
        for node in ast.parse(text).body:
            if isinstance(node, ast.FunctionDef):
                self.functions[node.name] = node
            elif isinstance(node, ast.ClassDef):
                methods = [part for part in node.body if isinstance(part, ast.FunctionDef)]
                self.classes[node.name] = {part.name: part for part in methods}
            elif isinstance(node, ast.ImportFrom):
                for each in node.names:
                    self.imported[each.asname or each.name] = node.module or "", each.name

    def has_name(self, *names: str) -> bool:
        """Return whether it uses or defines one of these names, beside words in its strings."""
        if not re.search(rf"\b({'|'.join(names)})\b[^ ]", self._text):  # `sleep 60` is a shell's
            return False
        return any(names_of(node).intersection(names) for node in ast.walk(ast.parse(self._text)))

    def resolved(self, name: str) -> tuple[Module, str]:
        """Return the module of the tests that defines a name, with the name there."""
        module, original = self.imported.get(name, ("", ""))
        known = name in self.functions or name in self.classes
        return (
            (self, name)
            if known or not module.startswith("tests.")
            else source(module).resolved(original)
        )

    @cached_property
    def methods(self) -> dict[str, list[tuple[Module, ast.FunctionDef]]]:
        """The methods, by name, of all classes that the module can name."""
        found: dict[str, list[tuple[Module, ast.FunctionDef]]] = {}
        for module, original in map(self.resolved, (*self.classes, *self.imported)):
            for name, method in module.classes.get(original, {}).items():
                found.setdefault(name, []).append((module, method))
        return found

    def called(self, name: str) -> list[tuple[Module, ast.FunctionDef]]:
        if name.startswith("."):
            return self.methods.get(name[1:], [])
        module, original = self.resolved(name)
        return [(module, module.functions[original])] if original in module.functions else []


@cache
def source(module: str) -> Module:
    """Return a module of the tests by its full name."""
    path = REPOSITORY.joinpath(*module.split("."))
    file = path.with_suffix(".py")
    return Module((file if file.exists() else path / "__init__.py").read_text("utf-8"))


def sources() -> dict[str, Module]:
    """Return all modules of the tests, by their names below `tests`, as `cli/test_help`."""
    names = sorted(str(path.relative_to(TESTS).with_suffix("")) for path in TESTS.rglob("*.py"))
    return {name: source("tests." + name.replace("/", ".")) for name in names}


_can_fail: dict[ast.FunctionDef, bool] = {}


def can_fail(module: Module, function: ast.FunctionDef) -> bool:
    """Return whether a function asserts, or calls one that does."""
    if function not in _can_fail:
        _can_fail[function] = asserts(function)  # also where it calls itself
        _can_fail[function] |= any(
            can_fail(*each) for name in calls(function) for each in module.called(name)
        )
    return _can_fail[function]


def test_every_test_asserts_something() -> None:
    idle = [
        f"{place}.py:{function.lineno}: {name}"
        for place, module in sources().items()
        for name, function in module.functions.items()
        if name.startswith("test_") and not can_fail(module, function)
    ]
    assert idle == [], "\n".join(idle)


def test_no_test_module_imports_from_another() -> None:
    """What two of them need is in the folder's parts.py or conftest.py, or in tests/lab."""
    wrong = [
        f"{name} imports {original} of {imported}"
        for name, module in sources().items()
        for imported, original in module.imported.values()
        if imported.startswith("tests.") and ".test_" in f".{imported}.{original}"
    ]
    assert wrong == []


def uses(*names: str) -> set[str]:
    return {place for place, module in sources().items() if module.has_name(*names)}


def test_no_stand_in_answers_what_it_does_not_know() -> None:
    assert uses("__getattr__", "Mock", "MagicMock", "AsyncMock") == set()


def test_tests_sleep_only_where_time_is_the_subject() -> None:
    """Elsewhere they wait for a condition, by `wait_until`."""
    sleeping = {name for name in uses("sleep", "time.sleep") if not name.startswith("bench/")}
    assert sleeping == SLEEP
