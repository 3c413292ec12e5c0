"""The program in a kernel spec of `jlr local kernels install`, which a Jupyter client starts.

Its arguments are a session, a kind of kernel and a connection file, or `--end`, a session and a
kernel. No session begins with `-`, but the server there chooses the names of kinds.
"""

from __future__ import annotations

import sys
from pathlib import Path

from jlremote.cli.boundary import explain
from jlremote.cli.command import Invocation
from jlremote.errors import JlrError


def main(*words: str) -> int:
    """Run as a kernel, or end a kernel once stdin ends; return the exit code."""
    from jlremote.kernels import bridge

    # What a client starts has no terminal of its own to ask on.
    context = Invocation(no_input=True, quiet=True).context(silent=True)
    try:
        if words[0] == "--end":
            _, session, kernel = words
            bridge.end(session, kernel, context, sys.stdin.buffer.read)
        else:
            session, kind, file = words
            itself = (sys.executable, "-P", "-m", "jlremote.cli.kernel_program", "--end", session)
            bridge.run(session, kind, Path(file), itself, context)
    except JlrError as failure:
        return explain(failure)
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
