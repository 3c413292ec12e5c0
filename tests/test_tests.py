"""Rules for the tests themselves: each can fail, and none needs another test module."""

from __future__ import annotations

import ast
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


class Function:
    """A function or a method: whether it can fail by itself, and what it calls.

    Attributes:
        can_fail: whether it asserts, or calls what does; first as far as its own text tells.
        calls: the names of what it calls, a method's as `.name`.
    """

    def __init__(self, node: ast.FunctionDef) -> None:
        self.line = node.lineno
        nodes = list(ast.walk(node))
        called = [part.func for part in nodes if isinstance(part, ast.Call)]
        own = any(isinstance(part, ast.Assert | ast.Raise) for part in nodes)
        self.can_fail = own or any(names_of(func) & FAIL for func in called)
        self.calls = {f".{func.attr}" for func in called if isinstance(func, ast.Attribute)}
        self.calls |= {func.id for func in called if isinstance(func, ast.Name)}


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
        self.functions: dict[str, Function] = {}
        self.classes: dict[str, dict[str, Function]] = {}
        self.imported: dict[str, tuple[str, str]] = {}
        self.names: set[str] = set()
        for node in ast.walk(ast.parse(text)):
            self.names |= names_of(node)
            if isinstance(node, ast.FunctionDef):
                self.functions.setdefault(node.name, Function(node))
            elif isinstance(node, ast.ClassDef):
                methods = [part for part in node.body if isinstance(part, ast.FunctionDef)]
                self.classes[node.name] = {part.name: Function(part) for part in methods}
            elif isinstance(node, ast.ImportFrom):
                for each in node.names:
                    self.imported[each.asname or each.name] = node.module or "", each.name

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
    def methods(self) -> dict[str, list[tuple[Module, Function]]]:
        """The methods, by name, of all classes that the module can name."""
        found: dict[str, list[tuple[Module, Function]]] = {}
        for module, original in map(self.resolved, (*self.classes, *self.imported)):
            for name, method in module.classes.get(original, {}).items():
                found.setdefault(name, []).append((module, method))
        return found

    def called(self, name: str) -> list[tuple[Module, Function]]:
        """Return the functions of the tests that a call may run."""
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


def can_fail(module: Module, function: Function) -> bool:
    """Return whether a function asserts, or calls one that does."""
    if not function.can_fail:
        calls, function.calls = function.calls, set()  # each is followed once
        found = [each for name in calls for each in module.called(name)]
        function.can_fail = any(can_fail(*each) for each in found)
    return function.can_fail


def test_every_test_asserts_something() -> None:
    idle = [
        f"{place}.py:{function.line}: {name}"
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
    """Return the modules of the tests that use or define one of these names."""
    return {place for place, module in sources().items() if module.names.intersection(names)}


def test_no_stand_in_answers_what_it_does_not_know() -> None:
    assert uses("__getattr__", "Mock", "MagicMock", "AsyncMock") == set()


def test_tests_sleep_only_where_time_is_the_subject() -> None:
    """Elsewhere they wait for a condition, by `wait_until`."""
    sleeping = {name for name in uses("sleep", "time.sleep") if not name.startswith("bench/")}
    assert sleeping == SLEEP
