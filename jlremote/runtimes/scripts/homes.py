"""Folders of a container's own for what is a user's, and a HOME that can be written.

A container's `/tmp` can be written whoever the user is in there. Run with a uid that has no passwd
entry it gets `HOME=/`, which may not be written, and much fails for want of one.
"""

from __future__ import annotations

import shlex

ROOT = "/tmp/jlr-$(id -u)"  # noqa: S108

# What a person's command may find in its environment is left alone: no variables of ours.
_HOME = """\
[ -w "${HOME:-/nonexistent}" ] || ! (umask 077; mkdir -p "FOLDER"/NAME/home) 2>/dev/null ||
  export HOME="FOLDER"/NAME/home
"""


def writable_home(name: str) -> str:
    """Return shell text that sets HOME to a folder of the session's, or job's, if need be."""
    return _HOME.replace("FOLDER", ROOT).replace("NAME", shlex.quote(name))
