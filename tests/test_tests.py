"""Rules for the tests themselves: each can fail, and none needs another test module."""

from __future__ import annotations

import ast
from functools import cache, cached_property

from tests.rows import REPOSITORY

TESTS = REPOSITORY / "tests"
# Calls of libraries that fail a test: pytest's, pexpect's and playwright's.
FAIL = {"pytest.raises", "pytest.fail", "pytest.warns", "expect", "expect_exact"}
FAILING: dict[ast.FunctionDef, bool] = {}
# Where time itself is the subject, or the program waits that a test gives to another machine.
SLEEP = {
    *("adversity/arp_program", "adversity/test_faults", "adversity/test_interruptions"),
    *("gpus/test_pictures", "images/parts", "jupyter/test_resumption"),
    *("lab/line", "lab/place", "lab/programs", "link/test_drops", "login/test_passwords"),
    *("mounts/test_away", "mounts/test_sleep", "outages/parts", "outages/test_engine_restart"),
    *("outages/test_outages", "outages/test_output", "outages/test_page"),
    *("sessions/test_failed_start", "ssh/forward/parts"),
}


class Module:
    """The functions and classes that a module of the tests defines or imports, by name."""

    def __init__(self, text: str) -> None:
        self.tree = ast.parse(text)
        self.defined = {
            node.name: node
            for node in reversed(list(ast.walk(self.tree)))
            if isinstance(node, ast.FunctionDef | ast.ClassDef)
        }
        self.imported = {
            alias.asname or alias.name: (node.module or "", alias.name)
            for node in ast.walk(self.tree)
            if isinstance(node, ast.ImportFrom)
            for alias in node.names
        }

    def resolve(self, name: str) -> tuple[Module, ast.FunctionDef | ast.ClassDef] | None:
        """Return what a name stands for, with its module, if that is one of the tests."""
        if name in self.defined:
            return self, self.defined[name]
        module, original = self.imported.get(name, ("", ""))
        return source(module).resolve(original) if module.startswith("tests.") else None

    @cached_property
    def methods(self) -> dict[str, list[tuple[Module, ast.FunctionDef]]]:
        """The methods, by name, of all classes that the module can name."""
        found: dict[str, list[tuple[Module, ast.FunctionDef]]] = {}
        for resolved in filter(None, map(self.resolve, (*self.defined, *self.imported))):
            for part in resolved[1].body if isinstance(resolved[1], ast.ClassDef) else ():
                if isinstance(part, ast.FunctionDef):
                    found.setdefault(part.name, []).append((resolved[0], part))
        return found

    def called(self, function: ast.Call) -> list[tuple[Module, ast.FunctionDef]]:
        """Return the functions of the tests that a call may run."""
        called = function.func
        if isinstance(called, ast.Attribute):
            return self.methods.get(called.attr, [])
        found = self.resolve(called.id) if isinstance(called, ast.Name) else None
        return [(found[0], found[1])] if found and isinstance(found[1], ast.FunctionDef) else []


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


def can_fail(module: Module, function: ast.FunctionDef) -> bool:
    """Return whether a function asserts, or calls one that does."""
    if function not in FAILING:
        FAILING[function] = False  # for one that calls itself
        nodes = list(ast.walk(function))
        calls = [node for node in nodes if isinstance(node, ast.Call)]
        names = {name for call in calls for name in names_of(call.func)}
        FAILING[function] = (
            any(isinstance(node, ast.Assert | ast.Raise) for node in nodes)
            or bool(FAIL & names)
            or any(can_fail(*each) for call in calls for each in module.called(call))
        )
    return FAILING[function]


def names_of(node: ast.AST) -> set[str]:
    """Return the name of a node: of an attribute also with what it is one of, as `time.sleep`."""
    if isinstance(node, ast.Attribute):
        owner = f"{node.value.id}." if isinstance(node.value, ast.Name) else ""
        return {node.attr, owner + node.attr}
    if isinstance(node, ast.FunctionDef):
        return {node.name}
    return {node.id} if isinstance(node, ast.Name) else set()


def test_every_test_asserts_something() -> None:
    idle = [
        f"{name}.py:{node.lineno}: {node.name}"
        for name, module in sources().items()
        for node in module.defined.values()
        if isinstance(node, ast.FunctionDef) and node.name.startswith("test_")
        if not can_fail(module, node)
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
    return {
        place
        for place, module in sources().items()
        if any(names_of(node).intersection(names) for node in ast.walk(module.tree))
    }


def test_no_stand_in_answers_what_it_does_not_know() -> None:
    assert uses("__getattr__", "Mock", "MagicMock", "AsyncMock") == set()


def test_tests_sleep_only_where_time_is_the_subject() -> None:
    """Elsewhere they wait for a condition, by `wait_until`."""
    sleeping = {name for name in uses("sleep", "time.sleep") if not name.startswith("bench/")}
    assert sleeping == SLEEP
