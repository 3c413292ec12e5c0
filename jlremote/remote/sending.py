"""A module and all of ours that it imports as one Python program, for a host's own Python."""

from __future__ import annotations

import ast
import pkgutil
import zlib
from contextlib import suppress
from functools import cache

OLDEST = (3, 6)
NO_PYTHON = 69  # sysexits.h: EX_UNAVAILABLE

# Packages are empty there: theirs import more than a program needs. All modules get a `__path__`,
# which only packages need.
_RUN = """\
import sys
import types
for name, text in SOURCES:
    module = sys.modules[name] = types.ModuleType(name)
    module.__path__ = []
    exec(compile(text, name, "exec"), module.__dict__)
sys.exit(sys.modules[MAIN].main(sys.argv[1:]))
"""
# In the arguments of each program that comes by stdin.
MARK = "a program of jlr, from stdin"
# Reads the program, and not a byte more: what follows is for the program.
_BOOT = f"""\
# {MARK}
import os, sys, zlib
marker, size, program = sys.argv.pop(1), int(sys.argv.pop(1)), b""
os.write(1, marker.encode() + b"\\n")
while len(program) < size:
    piece = os.read(0, size - len(program))
    if not piece: sys.exit(0)
    program += piece
exec(zlib.decompress(program))
"""
_IS_NEW_ENOUGH = f"import sys; sys.exit(sys.version_info < {OLDEST})"

# Sets `$python`, which is empty where there is none that is new enough. On hosts with an old
# `python3` a newer one often has the number in its name.
FIND_PYTHON = f"""\
for python in python3 python /opt/conda/bin/python /usr/libexec/platform-python \\
    python3.14 python3.13 python3.12 python3.11 python3.10 python3.9 python3.8 python3.7 ''
do [ -n "$python" ] && "$python" -ISc '{_IS_NEW_ENOUGH}' </dev/null 2>/dev/null && break; done
"""
RUN_PYTHON = f"""\
{FIND_PYTHON}[ -n "$python" ] && exec "$python" "$@"
echo 'no Python {".".join(map(str, OLDEST))} or later is there' >&2
exit {NO_PYTHON}
"""
# Precedes the arguments of Python.
PYTHON = ("sh", "-c", RUN_PYTHON, "sh")


def find_python(oldest: tuple[int, int]) -> str:
    """Return `FIND_PYTHON` for another version than `OLDEST`."""
    return FIND_PYTHON.replace(str(OLDEST), str(oldest))


@cache
def program(main: str) -> str:
    """Return the text of a program that calls `main(argv)` of a module, and exits with its result.

    The text is ASCII. The program has no file of its own, and needs no installed package of ours.
    """
    sources: dict[str, str] = {}
    _collect(main, sources)
    return _RUN.replace("SOURCES", ascii(tuple(sources.items()))).replace("MAIN", repr(main))


def boot_argv(main: str, marker: str, *arguments: str) -> tuple[str, ...]:
    """Return the arguments for Python that run a program which comes by stdin.

    It prints the line `marker` once it reads; `packed` and the program's own input are to follow.
    """
    return ("-c", _BOOT, marker, str(len(packed(main))), *arguments)


@cache
def packed(main: str) -> bytes:
    """Return the program as `boot_argv` reads it."""
    return zlib.compress(program(main).encode("ascii"), 9)


def _collect(name: str, sources: dict[str, str]) -> None:
    """Add a module's source, behind those of the modules that it imports."""
    if name in sources:
        return
    text = _source(name) or ""
    ours = __package__.partition(".")[0]
    for node in ast.parse(text).body if f"from {ours}" in text else ():  # to parse takes long
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == ours:
            for alias in node.names:
                inner = f"{node.module}.{alias.name}"
                _collect(inner if _source(inner) is not None else str(node.module), sources)
    parts = name.split(".")
    for length in range(1, len(parts)):
        sources.setdefault(".".join(parts[:length]), "")
    sources[name] = text


def _source(name: str) -> str | None:
    """Return the text of a module of ours; `None` of another name, or a package."""
    package, _, inner = name.partition(".")
    with suppress(OSError):  # `importlib.resources` would do, and takes long to load
        return (pkgutil.get_data(package, f"{inner.replace('.', '/')}.py") or b"").decode()
    return None
