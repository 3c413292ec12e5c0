"""Scripts for `sh -s`: several steps in one round trip, each with an output of its own.

A step's output stands between two lines that hold a random marker, on stdout and on stderr. That
tells it from anything that the login shell's startup files print before or after it. A script
always travels on stdin of `exec /bin/sh -s`: quoting on ssh's command line is not safe, as the
login shell may be fish or tcsh, where `shlex.quote` breaks.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterable

from jlremote.errors import NoShell
from jlremote.host.contract import Completed, Steps
from jlremote.text import printable


def new_marker() -> str:
    """Return a random word that no output contains by chance."""
    return f"jlr-{secrets.token_hex(12)}"


def framed(steps: Steps, marker: str) -> str:
    """Return the script that runs `steps` in order, each in a subshell of its own.

    A step's stdin is empty, or it would swallow the rest of the script. `$status` holds the exit
    status of the step before.
    """
    return "".join(_framed_step(name, text, marker) for name, text in steps.items())


def _framed_step(name: str, text: str, marker: str) -> str:
    begin = f"printf '\\n%s\\n' '{marker} begin {name}'"
    end = f"printf '\\n%s %s\\n' '{marker} end {name}' \"$status\""
    return (
        f"{begin}; {begin} >&2\n(\n{text}\n) </dev/null; status=$?\n"
        f"{end}; printf '\\n%s\\n' '{marker} end {name}' >&2\n"
    )


def announced(script: str, marker: str) -> str:
    """Return a script for streaming: output before the marker, on either stream, is noise.

    The braces make the shell read the whole script before it runs any of it, as its commands may
    read stdin; input that they leave is never taken for more of the script.
    """
    announce = f"printf '%s\\n' '{marker}'"
    return f"{{\n{announce}; {announce} >&2\n{script}\nexit\n}}\n"


def unframed(steps: Iterable[str], stdout: str, stderr: str, marker: str) -> dict[str, Completed]:
    """Return each step's result out of the script's whole output.

    Raises:
        JlrError: a step's end is missing, because the remote shell ended early.
    """
    results: dict[str, Completed] = {}
    for name in steps:
        found = _between(stdout, name, marker)
        if found is None:
            raise ended_early(stdout, stderr)
        output, status = found
        complaint = _between(stderr, name, marker)
        results[name] = Completed(int(status), output, complaint[0] if complaint else "")
    return results


def _between(text: str, name: str, marker: str) -> tuple[str, str] | None:
    begin, end = f"\n{marker} begin {name}\n", f"\n{marker} end {name}"
    # The first line of all has no line before it, so no newline either.
    _, opened, rest = f"\n{text}".partition(begin)
    body, closed, tail = rest.partition(end)
    if not opened or not closed:
        return None
    return body, tail.partition("\n")[0].strip()


def ended_early(stdout: str, stderr: str) -> NoShell:
    """Return the error of a shell that ended before the script, with its last words."""
    last_words = printable((stderr.strip() or stdout.strip())[-200:].strip())
    said = f"; it said: {last_words}" if last_words else ""
    hint = "look for an `exit` or an error in the shell startup files on the host"
    if "restricted" in last_words or "not available" in last_words:
        hint = (
            "the account needs another login shell there, `sudo chsh -s /bin/bash USER`, and a new "
            "login then: `jlr disconnect HOST`"
        )
    elif not last_words:
        hint += "; or the account has no shell (`/bin/false`)"
    return NoShell(f"the remote shell ended before the script was done{said}", hint=hint)
