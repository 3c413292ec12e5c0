"""Scripts for `sh -s`: several steps in one round trip, each with an output of its own.

A step's output stands between two lines that hold a random marker, on stdout and on stderr.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable

from jlremote.errors import JlrError, NoShell
from jlremote.place.host.contract import Completed, Steps
from jlremote.text import printable
from jlremote.untrusted import whole_number

NOISE_BYTES = 4096  # kept of what startup files print
_EXPIRED = re.compile("password (?:has expired|change required)", re.IGNORECASE)
_STATUS = re.compile("[0-9]{1,3}")
# What shells say that read a script for `sh`, because a startup file ended in `exec SHELL`.
_OTHER_SHELLS = {
    "fish": re.compile(r"^fish: ", re.MULTILINE),
    "tcsh": re.compile(r"^Missing '}'\.", re.MULTILINE),
}

Execute = Callable[[str, Callable[[str, bytes], None]], object]


def new_marker() -> str:
    """Return a random word that no output contains by chance."""
    return f"jlr-{os.urandom(12).hex()}"


def framed(steps: Steps, marker: str) -> str:
    """Return the script that runs `steps` in order, each in a subshell with an empty stdin.

    `$status` holds the exit status of the step before, `$statuses` those of all: ` NAME=STATUS … `.
    """
    # The host's own variables of these names must not count as a result.
    script = "status=; statuses=' '\n"
    for name, text in steps.items():
        begin = f"printf '\\n%s\\n' '{marker} begin {name}'"
        script += (
            f"{begin}; {begin} >&2\n(\n{text}\n) </dev/null; status=$?; "
            f'statuses="${{statuses}}{name}=$status "\n'
            f"printf '\\n%s %s\\n' '{marker} end {name}' \"$status\"; "
            f"printf '\\n%s\\n' '{marker} end {name}' >&2\n"
        )
    return script


def announced(script: str, marker: str) -> str:
    """Return a script for streaming: output before the marker, on either stream, is noise."""
    # The braces make the shell read the whole script before its commands read stdin.
    announce = f"printf '%s\\n' '{marker}'"
    return f"{{\n{announce}; {announce} >&2\n{script}\nexit\n}}\n"


def unframed(steps: Iterable[str], stdout: str, stderr: str, marker: str) -> dict[str, Completed]:
    """Return each step's result (`JlrError`: the shell ended early, so a step's end is missing)."""
    results: dict[str, Completed] = {}
    for name in steps:
        found = _between(stdout, name, marker)
        if marker in stderr and marker not in stdout:
            hint = "look for an `exec >` in the shell startup files on the host: it moves stdout"
            raise NoShell("the remote shell sends no output", hint=hint)
        if found is None or not _STATUS.fullmatch(found[1]):
            raise ended_early(stdout, stderr)
        output, status = found
        complaint = _between(stderr, name, marker)
        results[name] = Completed(whole_number(status), output, complaint[0] if complaint else "")
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
    for shell, says in _OTHER_SHELLS.items():
        if says.search(stderr):
            return NoShell(
                f"a startup file of the host, as `~/.bashrc`, runs `exec {shell}` for commands too",
                hint=f"write `case $- in *i*) exec {shell} ;; esac` in its place",
            )
    last_words = printable((stderr.strip() or stdout.strip())[-200:].strip())
    said = f"; it said: {last_words}" if last_words else ""
    hint = "look in the host's startup files for `exit`, `exec`, an error or a reader of stdin"
    if _EXPIRED.search(last_words):
        hint = "log in with `ssh`, which asks for a new password"
    elif "sftp" in last_words:
        hint = "ask the administrator: the account may only transfer files (`ForceCommand`)"
    elif "restricted" in last_words or "not available" in last_words:
        hint = (
            "`sudo chsh -s /bin/bash USER` on the host gives the account a login shell, which "
            "counts for the next login, after `jlr disconnect`"
        )
    elif not last_words:
        hint += "; or the account has no shell (`/bin/false`)"
    else:
        hint += ", or for a `ForceCommand` of its SSH server, which runs in place of any command"
    return NoShell(f"the remote shell ended before the script was done{said}", hint=hint)


class FromMarker:
    """One stream of an announced script, from the marker on."""

    def __init__(self, marker: str) -> None:
        self.begun = False  # whether the marker has come
        self._marker = f"{marker}\n".encode()
        self._before = b""

    @property
    def noise(self) -> str:
        return self._before.decode("utf-8", "replace")

    def take(self, data: bytes) -> bytes:
        """Return the bytes of `data` that come after the marker."""
        if not self.begun:
            before, marker, data = (self._before + data).partition(self._marker)
            self.begun = bool(marker)
            self._before = before[-NOISE_BYTES:]
        return data


def run_steps(steps: Steps, limit: int, execute: Execute) -> dict[str, Completed]:
    """Run `steps` through `execute(script, output)` and return how each ended.

    Raises `JlrError` if more than `limit` bytes came back, what startup files print among them, or
    the shell ended early.
    """
    marker = new_marker()
    parts = {"stdout": bytearray(), "stderr": bytearray()}

    def take(stream: str, data: bytes) -> None:
        parts[stream] += data
        if sum(map(len, parts.values())) > limit:
            loud = marker.encode() not in parts["stdout"]
            hint = "look at what the shell startup files on the host print" if loud else None
            raise JlrError(f"the host sent more than {limit >> 20} MiB in answer", hint=hint)

    execute(framed(steps, marker), take)
    stdout, stderr = (part.decode("utf-8", "surrogateescape") for part in parts.values())
    return unframed(steps, stdout, stderr, marker)
