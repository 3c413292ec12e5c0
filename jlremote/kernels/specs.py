"""`jlr local kernels`: kernel specs on this laptop, each for a kind of kernel of a session.

Source: https://jupyter-client.readthedocs.io/en/stable/kernels.html#kernel-specs
"""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import sys
from contextlib import suppress
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from jlremote.errors import JlrError, NotFound
from jlremote.hosts.context import Context
from jlremote.jupyter.endpoint import Server, hostname
from jlremote.kernels.remote_kernel import reached
from jlremote.laptop import paths
from jlremote.laptop.sessions import SessionRecord
from jlremote.place.host.installation import beside_jlr
from jlremote.selection import destruction
from jlremote.text import one_line
from jlremote.untrusted import local_name

_OURS = "jlr"
_FILE = "kernel.json"
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


def install(selector: str | None, context: Context, program: str) -> list[KernelSpec]:
    """Write a kernel spec for each kind of kernel of a session; `program` runs as the kernel.

    Raise `JlrError` if the session does not answer, or ZeroMQ is not installed here.
    """
    if find_spec("zmq") is None:
        missing = "kernels on this machine need `pyzmq`, which is not installed here"
        raise JlrError(missing, hint=f"`{beside_jlr('pyzmq')}`")
    record, api = reached(selector, context)
    tell_limits(record, api.server, context)
    kinds = api.kernel_specs()
    for former in listed(record.selector):
        delete(former)
    return [write(record.host, record.name, kind, spec, program) for kind, spec in kinds.items()]


def tell_limits(record: SessionRecord, server: Server, context: Context) -> None:
    """Note the limits on output of a Jupyter that jlr did not launch."""
    if not server.ours:
        place = f"{record.host}/{record.name}"
        context.progress.note(
            f"jlr did not launch the Jupyter of `{place}`: it drops output above 1 MB a second "
            f"(`jlr output {place}` has it), and takes no input above 10 MB"
        )


def remove(selector: str | None) -> list[KernelSpec]:
    """Remove and return the kernel specs of a session; raise for none, and for several owners."""
    specs = listed(selector)
    owners = dict.fromkeys(f"{spec.host}/{spec.session}" for spec in specs)
    if len(owners) > 1:
        commands = [f"jlr local kernels remove {shlex.quote(owner)}" for owner in owners]
        raise destruction.unnamed("local kernels remove", len(owners), commands)
    if not specs:
        whose = f" for `{selector}`" if selector else ""
        hint = "`jlr local kernels list` shows the installed ones"
        raise NotFound(f"no kernels are installed{whose}", hint=hint)
    for spec in specs:
        delete(spec)
    return specs


def listed(selector: str | None) -> list[KernelSpec]:
    """Return the installed kernel specs, by name, of one session or of all."""
    specs = filter(None, map(_read, sorted(folder().glob("*"))))
    return [one for one in specs if selector in (None, one.session, f"{one.host}/{one.session}")]


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


def write(host: str, session: str, kind: str, far: dict[str, Any], program: str) -> KernelSpec:
    """Write the kernel spec for a kind of kernel; `far` is the content of its own `kernel.json`.

    Raise `JlrError` if it cannot be written, or another program has a kernel of that name.
    """
    label = hostname(host, session).removesuffix(".localhost")
    name = local_name(f"{label}-{_OTHER.sub('-', kind.lower())}")
    spec = KernelSpec(name, host, session, kind)
    place = folder() / spec.name
    if place.exists() and _read(place) is None:
        hint = f"`jupyter kernelspec remove {spec.name}`"
        raise JlrError(f"jlr did not make `{place}`", hint=hint)
    # A client puts the path of a new kernel's connection file in place of the last word.
    words = (sys.executable, "-P", "-m", program, f"{host}/{session}", kind, "{connection_file}")
    content = {
        "argv": words,
        "display_name": f"{_words(far, 'display_name', kind)} ({session} on {host})",
        "language": _words(far, "language", ""),
        "interrupt_mode": "message",
        "metadata": {_OURS: {"host": host, "session": session, "kind": kind}},
    }
    paths.write_whole(place / _FILE, json.dumps(content, indent=1) + "\n")
    return spec


def _words(far: dict[str, Any], key: str, default: str) -> str:
    return one_line(str(far.get(key, default)))[:100]


def delete(spec: KernelSpec) -> None:
    """Remove a kernel spec with its folder."""
    shutil.rmtree(folder() / spec.name, ignore_errors=True)


def _read(place: Path) -> KernelSpec | None:
    with suppress(OSError, ValueError, KeyError, TypeError):
        ours = json.loads((place / _FILE).read_text("utf-8"))["metadata"][_OURS]
        return KernelSpec(place.name, *(str(ours[key]) for key in ("host", "session", "kind")))
    return None
