"""Imports run one way, from the command line down to the leaves; ARCHITECTURE.md shows the same.

It is short and names only modules that exist; each folder names its own.
"""

from __future__ import annotations

import ast
import re
from collections import Counter
from functools import cache
from pathlib import Path

import pytest

from tests.sources import PACKAGE, imports, modules, nodes, ours, python

PAGE = (PACKAGE.parent / "ARCHITECTURE.md").read_text("utf-8")
ROOMS = [path.parent for path in PACKAGE.rglob("*/__init__.py")]
LEAVES = {"remote", "untrusted", "times", "errors", "questions", "text", "root"}
# What each room imports besides itself and the leaves: no less than that, and no more.
LADDER = {
    "entry": "cli",
    "agents": "output place",
    "cli": "agents copies demo doctor editors forwards gpus hosts images jobs "
    "jupyter kernels laptop link.client listing mounts output place selection sessions",
    "containers": "gpus hosts images jupyter laptop place selection",
    "copies": "hosts laptop link.client link.wire place selection",
    "demo": "hosts jupyter laptop listing place sessions",
    "doctor": "containers forwards gpus hosts images "
    "jupyter kernels laptop link.client link.wire mounts output place",
    "editors": "hosts laptop link.client place selection",
    "forwards": "hosts jupyter laptop link.client link.wire place",
    "gpus": "hosts jupyter laptop link.client place",
    "hosts": "jupyter laptop link.client link.wire place",
    "images": "hosts jupyter laptop link.client place selection",
    "jobs": "containers forwards gpus hosts images jupyter laptop link.client place selection",
    "jupyter": "place",
    "kernels": "hosts jupyter laptop output place selection sessions",
    "laptop": "",
    "link": "editors jobs jupyter laptop link.wire mounts output place ssh",
    "link.client": "jupyter link.wire place",
    "link.wire": "jupyter laptop",
    "listing": "containers forwards hosts jobs jupyter "
    "laptop link.client link.wire mounts place selection",
    "mounts": "hosts jupyter laptop link.client link.wire place selection",
    "output": "containers hosts jupyter laptop link.client place selection",
    "place": "laptop",
    "selection": "forwards hosts jupyter laptop link.client link.wire place",
    "sessions": "containers forwards gpus hosts images jobs jupyter "
    "laptop link.client link.wire listing mounts output place selection",
    "ssh": "laptop place",
}
SPLIT_BY_PROCESS = {"link.client", "link.wire"}

# The only packages that may import a library.
OWNERS = {
    "click": {"cli"},
    "rich": {"cli"},
    "paramiko": {"ssh"},
    "sshtunnel": {"ssh"},
    "asyncssh": {"demo", "link"},
    "mcp": {"agents"},
    "pathspec": {"copies"},
    "platformdirs": {"laptop"},
    "keyring": {"laptop", "ssh"},
    "jeepney": {"laptop"},
    "watchfiles": {"copies"},
    "websocket": {"jupyter"},
    "zmq": {"remote", "kernels"},
}

# Calls that print to the user or ask.
SPEAKS = {"print", "input", "getpass"}
STREAMS = {"stdin", "stdout", "stderr"}


@cache
def folders() -> set[str]:
    """Return all folders of the package, as modules are named."""
    return {module.rpartition(".")[0] for module in modules()}


def package(module: str) -> str:
    """Return the package that a module belongs to; the link is told apart by process."""
    parts = module.split(".")[1:]
    if not parts:
        return "root"
    split = ".".join(parts[:2])
    if split in SPLIT_BY_PROCESS:
        return split
    return "entry" if parts[0] == "__main__" else parts[0]


@cache
def room(module: str) -> str:
    """Return the folder of a module; one beside folders is a room of its own."""
    folder = module if module in folders() else module.rpartition(".")[0]
    beside_folders = any(other.startswith(f"{folder}.") for other in folders())
    return module if beside_folders else folder


def arrows() -> dict[str, set[str]]:
    """Return what each room imports besides itself and the leaves."""
    found: dict[str, set[str]] = {package(module): set() for module in modules()}
    for module in modules():
        found[package(module)] |= {package(other) for other in ours(module)}
    return {name: others - {name} - LEAVES for name, others in found.items()}


def test_each_room_imports_what_the_ladder_says() -> None:
    said = {name: set(others.split()) for name, others in LADDER.items()}
    assert {name: others for name, others in arrows().items() if name not in LEAVES} == said
    assert not any(arrows()[leaf] for leaf in LEAVES)


def test_the_page_shows_the_ladder() -> None:
    """Each line has the rooms that import only what the lines below it have."""
    left, lines = arrows(), list[str]()
    while left:
        free = sorted(name for name, others in left.items() if not others & left.keys())
        assert free, f"a cycle of rooms: {sorted(left)}"
        shown = [name for name in free if name not in ("entry", "root")]
        lines.insert(0, f"    {', '.join(shown)}")
        left = {name: others for name, others in left.items() if name not in free}
    assert "\n".join(line for line in lines if line.strip()) in PAGE


def test_no_module_is_part_of_a_cycle() -> None:
    refuse_cycle({module: ours(module) for module in modules()})


def test_no_folder_is_part_of_a_cycle() -> None:
    arrows: dict[str, set[str]] = {room(module): set() for module in modules()}
    for module in modules():
        arrows[room(module)] |= {room(other) for other in ours(module)} - {room(module)}
    refuse_cycle(arrows)


@cache
def libraries(module: str) -> set[str]:
    """Return the first part of the name of all that a module imports."""
    return {name.partition(".")[0] for name in imports(modules()[module], module=module)}


def refuse_cycle(left: dict[str, set[str]]) -> None:
    # Taking away what imports nothing that is left ends with nothing, unless there is a cycle.
    while free := {module for module, needed in left.items() if not needed & left.keys()}:
        left = {module: needed for module, needed in left.items() if module not in free}
    assert not left


@pytest.mark.parametrize("library", OWNERS)
def test_a_library_stays_in_its_room(library: str) -> None:
    users = {package(module) for module in modules() if library in libraries(module)}
    assert users <= OWNERS[library]


def test_nothing_below_the_command_line_prints_or_asks() -> None:
    speakers = [
        f"{module}:{getattr(node, 'lineno', '?')}"
        for module, tree in modules().items()
        if package(module) not in ("cli", "entry")
        for node in nodes(tree)
        if speaks(node)
    ]
    # Processes without a terminal, whose stdout is a pipe on which they say that they are ready,
    # and programs that run on the host.
    silent = (
        "jlremote.link.service.link_process:",
        "jlremote.forwards.loopback_page:",
        "jlremote.remote.",
        "jlremote.gpus.waiter_program:",
    )
    assert [place for place in speakers if not place.startswith(silent)] == []


def speaks(node: ast.AST) -> bool:
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
        return node.func.id in SPEAKS
    return (
        isinstance(node, ast.Attribute)
        and isinstance(node.value, ast.Name)
        and node.value.id == "sys"
        and node.attr in STREAMS
    )


def test_forbidden_calls_and_imports_are_found() -> None:
    """A check that finds nothing would always pass."""
    assert speaks(ast.parse("print(1)").body[0].value)  # type: ignore[attr-defined]
    assert speaks(ast.parse("sys.stdin").body[0].value)  # type: ignore[attr-defined]
    assert "jlremote.errors" in ours("jlremote.laptop.paths")
    assert any("rich" in libraries(module) for module in modules())


HEAVY = ("paramiko", "sshtunnel", "asyncssh", "cryptography")


@pytest.mark.parametrize(
    "argv",
    [
        ("list",),
        ("--no-input", "start", "-h"),
        ("--no-input", "start", "host.invalid"),
        ("open", "--no-browser"),
        ("stop",),
        ("completion", "bash"),
    ],
    ids=" ".join,
)
def test_the_process_of_a_command_never_loads_ssh(
    argv: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("XDG_STATE_HOME", "XDG_CONFIG_HOME", "XDG_RUNTIME_DIR"):
        monkeypatch.setenv(name, str(tmp_path / name))
    monkeypatch.setenv("JLR_LINK_IDLE", "1")
    script = (
        "import sys; from jlremote.__main__ import main; main()\n"
        f"print(sorted(set(sys.modules) & {{*{HEAVY}}}))"
    )
    done = python(script, *argv)
    assert done.stdout.splitlines()[-1:] == ["[]"], done.stderr


@pytest.mark.parametrize("option", ["--version", "--help"])
def test_an_answer_without_a_host_loads_the_command_line_alone(option: str) -> None:
    """`tests/bench/startup.py` measures what that saves: at most 1.5 times `import click`."""
    script = (
        "import sys; from jlremote.cli.boundary import run; run()\n"
        "print(*{name.partition('.')[0] for name in sys.modules}, sep=' ')\n"
        "print(*{n.split('.')[1] for n in sys.modules if n.startswith('jlremote.')}, sep=' ')"
    )
    done = python(script, option)
    loaded, rooms = (set(line.split()) for line in done.stdout.splitlines()[-2:])
    assert loaded.isdisjoint({"rich", "platformdirs", "keyring", "psutil", "filelock", *HEAVY})
    assert rooms == {"cli", "errors", "text"}


def test_a_command_in_a_known_session_loads_what_that_takes() -> None:
    """`tests/bench/streams.py` measures it: a short `jlr shell` is mostly its own start."""
    script = (
        "import sys, jlremote.sessions.shell, jlremote.cli.keyboard.local_terminal\n"
        "print(*sys.modules, sep=' ')"
    )
    done = python(script)
    loaded = set(done.stdout.split())
    assert "jlremote.sessions.shell" in loaded, done.stderr
    rooms = {name.split(".")[1] for name in loaded if name.startswith("jlremote.")}
    assert rooms.isdisjoint({"gpus", "jobs"})
    assert loaded.isdisjoint({"http.client", "ssl", "jlremote.jupyter.survey"})
    assert loaded.isdisjoint({"multiprocessing", "subprocess", "secrets", "shutil", "tempfile"})


def test_the_page_is_short() -> None:
    assert len(PAGE.splitlines()) <= 160


def test_every_module_that_the_page_names_exists() -> None:
    named = set(re.findall(r"`([\w/]+\.py)`", PAGE))
    paths = [path for room in (PACKAGE, PACKAGE.parent / "tests") for path in room.rglob("*.py")]
    files = {f"/{path.relative_to(PACKAGE.parent).as_posix()}" for path in paths}
    assert len(named) > 20
    assert {name for name in named if not any(each.endswith(f"/{name}") for each in files)} == set()


def test_the_map_shows_every_package() -> None:
    packages = {path.parent.name for path in PACKAGE.glob("*/__init__.py")}
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
