"""Imports run one way: cli → workflow → link, jupyter, mounts, runtimes, storage → host → leaves.

On the other side of the link's socket, in its own process, the link's server may also use `ssh`.
"""

from __future__ import annotations

import ast
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

from tests.sources import imports, modules, ours

LEAVES = {"desktop", "remote", "untrusted", "times", "errors", "questions", "text", "root"}
MIDDLE = {
    *("doctor", "gpus", "images", "jobs", "jupyter", "mounts", "ports", "runtimes", "schedulers"),
    *("kernels", "output", "storage"),
}
# What each package may import, besides itself and the leaves.
LADDER = {
    "cli": {"workflow", "schedulers", *(MIDDLE - {"mounts", "ports", "runtimes"})},
    "workflow": {"link.client", "link.wire", "host", "demo", *MIDDLE},
    "link.client": {"link.wire", "host", "jupyter", "ports"},
    "link.wire": {"jupyter", "ports", "storage"},
    "link": {"link.wire", "ssh", "host", *MIDDLE},  # the rest of it runs in the link's process
    "doctor": {"gpus", "host", "images", "runtimes", "schedulers"},
    "gpus": {"host"},
    "images": {"host", "runtimes"},
    "jobs": {"host", "gpus", "runtimes", "schedulers"},
    "jupyter": {"host", "gpus", "output", "runtimes", "storage"},
    "kernels": {"host", "jupyter", "ports", "storage"},
    "mounts": {"host", "storage"},
    "output": {"host"},
    "ports": {"host", "jupyter", "runtimes"},
    "runtimes": {"gpus", "host", "schedulers", "storage"},
    "schedulers": {"host"},
    "ssh": {"host", "storage"},
    "demo": {"storage"},
    "storage": set(),
    "host": set(),
    "entry": {"cli"},
    **{leaf: set() for leaf in LEAVES},
}
SPLIT_BY_PROCESS = {"link.client", "link.wire"}

# The only packages that may import a library.
OWNERS = {
    "click": {"cli"},
    "rich": {"cli"},
    "paramiko": {"ssh"},
    "sshtunnel": {"ssh"},
    "asyncssh": {"demo", "link"},
    "platformdirs": {"storage"},
    "keyring": {"storage", "ssh"},
    "jeepney": {"desktop"},
    "websocket": {"jupyter"},
    "zmq": {"kernels", "output"},
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


def test_a_package_imports_only_what_is_below_it() -> None:
    for module in modules():
        here = package(module)
        assert here in LADDER, f"{module} is in no package that the ladder knows"
        allowed = LADDER[here] | LEAVES | {here}
        too_high = {other for other in ours(module) if package(other) not in allowed}
        assert not too_high, f"{module} ({here}) may import {sorted(allowed)}, not {too_high}"


def test_no_module_is_part_of_a_cycle() -> None:
    refuse_cycle({module: ours(module) for module in modules()})


def test_no_folder_is_part_of_a_cycle() -> None:
    arrows: dict[str, set[str]] = {room(module): set() for module in modules()}
    for module in modules():
        arrows[room(module)] |= {room(other) for other in ours(module)} - {room(module)}
    refuse_cycle(arrows)


def refuse_cycle(left: dict[str, set[str]]) -> None:
    # Taking away what imports nothing that is left ends with nothing, unless there is a cycle.
    while free := {module for module, needed in left.items() if not needed & left.keys()}:
        left = {module: needed for module, needed in left.items() if module not in free}
    assert not left


@pytest.mark.parametrize("library", OWNERS)
def test_a_library_stays_in_its_room(library: str) -> None:
    users = {
        package(module)
        for module, tree in modules().items()
        if library in {name.partition(".")[0] for name in imports(tree, module=module)}
    }
    assert users <= OWNERS[library]


def test_nothing_below_the_command_line_prints_or_asks() -> None:
    speakers = [
        f"{module}:{getattr(node, 'lineno', '?')}"
        for module, tree in modules().items()
        if package(module) not in ("cli", "entry")
        for node in ast.walk(tree)
        if speaks(node)
    ]
    # Processes without a terminal, whose stdout is a pipe on which they say that they are ready,
    # and programs that run on the host.
    silent = (
        "jlremote.link.service.process:",
        "jlremote.workflow.forward.loopback_page:",
        "jlremote.remote.",
        "jlremote.gpus.waiting.waiter_program:",
        "jlremote.output.recording.",
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
    assert "jlremote.errors" in ours("jlremote.storage.paths")
    assert "rich" in {
        name.partition(".")[0] for m in modules() for name in imports(modules()[m], module=m)
    }


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
    done = subprocess.run(
        [sys.executable, "-c", script, *argv], capture_output=True, text=True, timeout=60
    )
    assert done.stdout.splitlines()[-1:] == ["[]"], done.stderr


@pytest.mark.parametrize("option", ["--version", "--help"])
def test_an_answer_without_a_host_loads_the_command_line_alone(option: str) -> None:
    """`tests/bench/startup.py` measures what that saves: at most 1.5 times `import click`."""
    script = (
        "import sys; from jlremote.cli.boundary import run; run()\n"
        "print(*{name.partition('.')[0] for name in sys.modules}, sep=' ')\n"
        "print(*{n.split('.')[1] for n in sys.modules if n.startswith('jlremote.')}, sep=' ')"
    )
    argv = [sys.executable, "-c", script, option]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=60)
    loaded, rooms = (set(line.split()) for line in done.stdout.splitlines()[-2:])
    assert loaded.isdisjoint({"rich", "platformdirs", "keyring", "psutil", "filelock", *HEAVY})
    assert rooms == {"cli", "errors", "text"}


def test_a_command_in_a_known_session_loads_what_that_takes() -> None:
    """`tests/bench/streams.py` measures it: a short `jlr shell` is mostly its own start."""
    script = (
        "import sys, jlremote.workflow.session.shell, jlremote.cli.keyboard.local_terminal\n"
        "print(*sys.modules, sep=' ')"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    loaded = set(done.stdout.split())
    assert "jlremote.workflow.session.shell" in loaded, done.stderr
    rooms = {name.split(".")[1] for name in loaded if name.startswith("jlremote.")}
    assert rooms.isdisjoint({"gpus", "schedulers"})
    assert loaded.isdisjoint({"http.client", "ssl", "jlremote.jupyter.survey"})
    assert loaded.isdisjoint({"multiprocessing", "subprocess", "secrets", "shutil", "tempfile"})
