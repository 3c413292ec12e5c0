"""Programs that are sent: whole, from memory, and run by the oldest Python that is here."""

from __future__ import annotations

import ast
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from jlremote.remote import relay, sending, sftp
from tests.forward.parts import echo, serving
from tests.sources import PACKAGE, imports, modules

MODULES = sorted(path.stem for path in (PACKAGE / "remote").glob("*.py"))
MODULES = [f"jlremote.remote.{name}" for name in MODULES if name not in ("__init__", "sending")]
# Modules, functions and arguments of the standard library that 3.6 lacks.
NEWER = {
    *("__future__", "dataclasses", "contextvars", "graphlib", "zoneinfo", "tomllib", "resources"),
    *("removeprefix", "removesuffix", "capture_output=", "text=", "missing_ok="),
    *("prod", "dist", "comb", "lcm", "cache", "cached_property", "nullcontext", "to_thread"),
    *("fromisoformat", "time_ns", "monotonic_ns", "readlink_to", "hardlink_to", "pairwise"),
    *("create_server", "ThreadingHTTPServer", "posix_spawn", "memfd_create", "pidfd_open"),
    *("waitstatus_to_exitcode", "is_relative_to", "Protocol", "Final", "Literal", "TypedDict"),
    *("TypeAlias", "ParamSpec", "get_running_loop", "create_task", "dirs_exist_ok="),
}


def names(tree: ast.AST) -> Iterator[str]:
    """Yield the names that a module imports, takes of others, or gives as arguments."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import | ast.ImportFrom):
            yield from (part for alias in node.names for part in alias.name.split("."))
            yield from (getattr(node, "module", None) or "").split(".")
        elif isinstance(node, ast.Attribute):
            yield node.attr
        elif isinstance(node, ast.keyword):
            yield f"{node.arg}="


@pytest.fixture(scope="module")
def python() -> str:
    """The interpreter of the oldest version from 3.6 on that runs here."""
    pyenv = Path(os.environ.get("PYENV_ROOT") or Path.home() / ".pyenv") / "versions"
    for minor in range(6, sys.version_info.minor):
        of_pyenv = (str(path) for path in pyenv.glob(f"3.{minor}.*/bin/python3"))
        older = next(of_pyenv, None) or shutil.which(f"python3.{minor}")
        if older and subprocess.run([older, "--version"], capture_output=True).returncode == 0:
            return older
    return sys.executable


# What comes with the Jupyter that a module runs beside.
JUPYTERS = {
    "jlremote.remote.notebook_run": {"nbclient", "nbformat", "jupyter_client"},
    "jlremote.remote.recorded_kernel": {"zmq"},
    "jlremote.remote.recorder_program": {"zmq"},
}


@pytest.mark.parametrize("name", MODULES)
def test_a_module_is_python_3_6_and_uses_nothing_newer(name: str) -> None:
    text = (PACKAGE.parent / f"{name.replace('.', '/')}.py").read_text("utf-8")
    assert set(names(ast.parse(text, feature_version=(3, 6)))) & NEWER == set()


@pytest.mark.parametrize("name", MODULES)
def test_a_module_imports_the_standard_library_and_its_neighbours_only(name: str) -> None:
    others = set(imports(modules()[name], module=name)) - set(MODULES)
    roots = {other.partition(".")[0] for other in others} - JUPYTERS.get(name, set())
    assert roots <= sys.stdlib_module_names


def test_newer_names_are_noticed() -> None:
    newer = ("from x import dataclasses", "''.removeprefix('a')", "run((), capture_output=True)")
    assert all(set(names(ast.parse(text))) & NEWER for text in newer)


@pytest.mark.parametrize("name", MODULES)
def test_the_oldest_python_loads_a_program(name: str, python: str) -> None:
    code = sending.program(name).replace("sys.exit(", "print(").replace(".main(sys.argv[1:])", "")
    done = subprocess.run([python, "-I", "-c", code], capture_output=True, text=True)
    assert name in done.stdout, done


def test_the_oldest_python_relays_what_a_server_says(python: str) -> None:
    with serving(echo) as server:
        opening = json.dumps((9, "127.0.0.1", server.port)).encode()
        none = json.dumps((9, "no\0path")).encode()
        frames = (relay.OPEN, 2, none), (relay.OPEN, 1, opening), (relay.DATA, 1, b"hello")
        sent = b"".join(relay.HEAD.pack(*head, len(body)) + body for *head, body in frames)
        argv = sending.boot_argv(relay.__name__, "ready")
        with subprocess.Popen([python, *argv], stdin=-1, stdout=-1) as process:
            assert process.stdin is not None
            assert process.stdout is not None
            assert process.stdout.readline() == b"ready\n"
            process.stdin.write(sending.packed(relay.__name__) + sent)
            process.stdin.flush()
            answer = process.stdout.read(4 * relay.HEAD.size + 5)
            assert answer.startswith(relay.HEAD.pack(relay.REFUSED, 2, 0))
            assert answer[-5:] == b"hello"  # after OPENED, CREDIT and the head of DATA
            process.stdin.close()


def test_the_oldest_python_serves_files(python: str) -> None:
    argv = (python, "-c", sending.program(sftp.__name__))
    done = subprocess.run(argv, input=b"\0\0\0\5\1\0\0\0\3", capture_output=True, check=True)
    assert done.stdout[4:9] == b"\2\0\0\0\3"


# Uses modules of ours that import others, from two packages.
_PROBE = "jlremote.gpus.snapshot"


def test_a_program_has_all_modules_that_its_main_one_imports(tmp_path: Path) -> None:
    text = sending.program(_PROBE)
    assert text.isascii()
    assert "jlremote.untrusted" in text
    (tmp_path / "program.py").write_text(text)
    code = text.replace("sys.exit(", "print(").replace(".main(sys.argv[1:])", ".__name__")
    done = subprocess.run(
        [sys.executable, "-I", "-c", code], capture_output=True, text=True, cwd=tmp_path
    )
    assert (done.stdout, done.stderr) == (f"{_PROBE}\n", "")
