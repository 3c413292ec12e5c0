"""The folder of a user's files in a container, and a writable HOME.

Any user can write a container's `/tmp`. A uid without a passwd entry gets `HOME=/`, which it cannot
write, and many programs fail without a HOME.
"""

from __future__ import annotations

import shlex

ROOT = "/tmp/jlr-$(id -u)"  # noqa: S108

# Without variables of its own: the environment is that of the person's command.
_HOME = """\
[ -w "${HOME:-/nonexistent}" ] || ! (umask 077; mkdir -p "FOLDER"/NAME/home) 2>/dev/null ||
  export HOME="FOLDER"/NAME/home
"""


def writable_home(name: str) -> str:
    """Return shell text that sets HOME to a folder of the session or job if it is not writable."""
    return _HOME.replace("FOLDER", ROOT).replace("NAME", shlex.quote(name))
