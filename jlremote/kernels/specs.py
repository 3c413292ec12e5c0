"""Kernel specs on this laptop, each of which names a kind of kernel of a session.

Source: https://jupyter-client.readthedocs.io/en/stable/kernels.html#kernel-specs
"""

from __future__ import annotations

import json
import os
import re
import shutil
import sys
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from jlremote.errors import JlrError
from jlremote.ports.origins import hostname
from jlremote.storage import paths
from jlremote.text import one_line
from jlremote.untrusted import local_name

_OURS = "jlr"
_FILE = "kernel.json"
# What a client puts the path of a new kernel's connection file in place of.
_CONNECTION_FILE = "{connection_file}"
_LONGEST_TEXT = 100
_OTHER = re.compile(r"[^a-z0-9._-]+")


@dataclass(frozen=True)
class KernelSpec:
    """A kernel spec of jlr's on this laptop."""

    name: str  # by which clients choose it: `jupyter nbconvert --ExecutePreprocessor.kernel_name=`
    host: str
    session: str
    kind: str  # its name there: `python3`

    def to_json(self) -> dict[str, Any]:
        return dict(vars(self))


def folder() -> Path:
    """Return the folder in which every Jupyter of this user looks for kernel specs."""
    home = Path.home()
    if chosen := os.environ.get("JUPYTER_DATA_DIR"):
        data = Path(chosen)
    elif sys.platform == "win32":
        data = Path(os.environ.get("APPDATA", home)) / "jupyter"
    elif sys.platform == "darwin":
        data = home / "Library/Jupyter"
    else:
        data = Path(os.environ.get("XDG_DATA_HOME") or home / ".local/share") / "jupyter"
    return data / "kernels"


def write(host: str, session: str, kind: str, there: dict[str, Any], program: str) -> KernelSpec:
    """Write the kernel spec for a kind of kernel; `there` is what its `kernel.json` has.

    `program` is the module that runs as the kernel.

    Raises:
        JlrError: it cannot be written, or another program has a kernel of that name.
    """
    label = hostname(host, session).removesuffix(".localhost")
    name = local_name(f"{label}-{_OTHER.sub('-', kind.lower())}")
    spec = KernelSpec(name, host, session, kind)
    place = folder() / spec.name
    if place.exists() and _read(place) is None:
        raise JlrError(
            f"jlr did not make `{place}`", hint=f"`jupyter kernelspec remove {spec.name}`"
        )
    words = (sys.executable, "-P", "-m", program, f"{host}/{session}", kind, _CONNECTION_FILE)
    content = {
        "argv": words,
        "display_name": f"{_words(there, 'display_name', kind)} ({session} on {host})",
        "language": _words(there, "language", ""),
        "interrupt_mode": "message",
        "metadata": {_OURS: {"host": host, "session": session, "kind": kind}},
    }
    paths.write_whole(place / _FILE, json.dumps(content, indent=1) + "\n")
    return spec


def _words(there: dict[str, Any], key: str, default: str) -> str:
    return one_line(str(there.get(key, default)))[:_LONGEST_TEXT]


def installed() -> list[KernelSpec]:
    """Return the kernel specs of jlr's, by name."""
    return list(_found())


def remove(spec: KernelSpec) -> None:
    """Remove a kernel spec with its folder."""
    shutil.rmtree(folder() / spec.name, ignore_errors=True)


def _found() -> Iterator[KernelSpec]:
    with suppress(FileNotFoundError):
        for place in sorted(folder().iterdir()):
            if spec := _read(place):
                yield spec


def _read(place: Path) -> KernelSpec | None:
    """Return the kernel spec in a folder, `None` for another program's or none."""
    with suppress(OSError, ValueError, KeyError, TypeError):
        ours = json.loads((place / _FILE).read_text("utf-8"))["metadata"][_OURS]
        return KernelSpec(place.name, *(str(ours[key]) for key in ("host", "session", "kind")))
    return None
