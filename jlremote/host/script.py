"""Scripts for `sh -s`: several steps in one round trip, each with an output of its own.

A step's output stands between two lines that hold a random marker, on stdout and on stderr, so
that whatever the login shell's startup files print before or after is told apart from answers.
Quoting on ssh's command line is not safe (the login shell may be fish or tcsh, where
`shlex.quote` breaks), so a script always travels on stdin of `exec /bin/sh -s`.
"""

from __future__ import annotations

import secrets
import shlex
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from jlremote.errors import NoShell
from jlremote.text import printable

Steps = Mapping[str, str]
TOOK_TOO_LONG = 124  # `timeout` says so


@dataclass(frozen=True)
class Completed:
    """How a step ended: its exit status and what it printed."""

    status: int
    stdout: str
    stderr: str

    @property
    def complaint(self) -> str:
        """The last line of stderr (else of stdout), safe to show to a person."""
        lines = (self.stderr.strip() or self.stdout.strip()).splitlines()
        return printable(lines[-1].strip()) if lines else f"exit status {self.status}"


def command_line(argv: Iterable[str]) -> str:
    """Return argv as one line for a POSIX shell, also fit for a person to paste."""
    return shlex.join(argv)


def typed_path(path: str) -> str:
    """Return a path as one types it in a shell, which knows one's home if `~/` is not quoted."""
    home, slash, below = path.partition("/")
    return f"~/{shlex.quote(below)}" if home == "~" and slash else shlex.quote(path)


def bounded(argv: Iterable[str], seconds: int) -> str:
    """Return shell text that runs a command and ends it if it takes too long, where the host can.

    Its status is then `TOOK_TOO_LONG`.
    """
    command = command_line(argv)
    return f"if command -v timeout >/dev/null; then timeout {seconds} {command}; else {command}; fi"


def new_marker() -> str:
    """Return a word that no output can hold by chance."""
    return f"jlr-{secrets.token_hex(12)}"


def framed(steps: Steps, marker: str) -> str:
    """Return the script that runs `steps` in order, each in a subshell of its own.

    stdin of a step is empty, or it would swallow the rest of the script. A step finds the exit
    status of the one before it in `$status`.
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
    """Return a script for streaming: what comes before the marker, on either stream, is noise.

    The braces let the shell read all of it before it runs any, as what it runs may read stdin; and
    what is left there is never taken for more of the script.
    """
    announce = f"printf '%s\\n' '{marker}'"
    return f"{{\n{announce}; {announce} >&2\n{script}\nexit\n}}\n"


def until_hang_up(command: str) -> str:
    """Return shell text that runs `command` until it ends, or stdin does.

    For what would run for ever when nobody listens any more. Where stdin is held open for as long
    as somebody does, its end gets through to every place that the text may run at, also into a
    container, while signals end at the engine's client.
    """
    return f"""\
exec 3<&0
{command} 3<&- &
command=$!
{{ read -r nothing; kill $command; }} <&3 3<&- >/dev/null 2>&1 &
watcher=$!
exec 3<&-
wait $command; status=$?
kill $watcher 2>/dev/null
exit $status
"""


def unframed(steps: Iterable[str], stdout: str, stderr: str, marker: str) -> dict[str, Completed]:
    """Return each step's result out of everything that came back.

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
    # The very first line of all has no line before it that would need ending.
    _, opened, rest = f"\n{text}".partition(begin)
    body, closed, tail = rest.partition(end)
    if not opened or not closed:
        return None
    return body, tail.partition("\n")[0].strip()


def ended_early(stdout: str, stderr: str) -> NoShell:
    """Return why a script was not run: the shell's last words."""
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
