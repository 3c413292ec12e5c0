"""Stdin and stdout of a command in a container that go past the engine's `exec`.

Each byte of an `exec` passes the engine's client, its daemon and its shim: 110 MB/s where ssh to
the container itself has 400. So the host's SSH server connects to the container's own address, and
`direct_program`, which runs the command there, gives both streams to that connection. It must begin
with a secret that came through `exec`: others on the host reach the address, too.
"""

from __future__ import annotations

import importlib.resources
import shlex
from dataclasses import dataclass

# Without Python, or with an old one or one that lacks modules, stdin and stdout stay as they are.
_RUN = """\
set -- WORD ADDRESS "$@"
for python in python3 /opt/conda/bin/python /usr/libexec/platform-python; do
  ! command -v "$python" >/dev/null || exec "$python" -I -S -c START PROGRAM "$@"
done
echo "$1 0 -"
shift 2
exec "$@"
"""
_START = """\
import os, sys
text = sys.argv.pop(1)
try:
    if sys.version_info >= (3, 6):
        eval(compile(text, "direct", "exec"))
except ImportError:
    pass
os.write(1, (sys.argv[1] + " 0 -\\n").encode())
os.execv("/bin/sh", ["/bin/sh", "-c", 'exec "$@"', "sh"] + sys.argv[3:])
"""
_PROGRAM = (importlib.resources.files(__package__) / "direct_program.py").read_text("utf-8")


@dataclass(frozen=True)
class DirectStreams:
    """Where a command's stdin and stdout may go past the engine, and how that is announced."""

    address: str  # the container's own, which the host reaches
    word: str  # a random one, with which the announcement begins


def run(direct: DirectStreams) -> str:
    """Return the text for `sh` that becomes the command `"$@"`."""
    words = {"WORD": direct.word, "ADDRESS": direct.address, "START": _START, "PROGRAM": _PROGRAM}
    text = _RUN
    for name, value in words.items():
        text = text.replace(name, shlex.quote(value))
    return text
