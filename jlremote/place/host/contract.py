"""A host as a shell that runs scripts, how their steps ended, and records in their output."""

from __future__ import annotations

import re
import struct
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from jlremote.errors import JlrError
from jlremote.text import one_line, printable

if TYPE_CHECKING:
    from typing import TypeAlias

SCRIPT_SECONDS = 60.0
OUTPUT_BYTES = 8 << 20
# The label of what belongs to one user of the host.
USER_LABEL = "org.jlremote.user"
# The engine's option that selects this user's containers, on a host that many users share.
MINE = f'--filter="label={USER_LABEL}=$(id -un || id -u)"'

Steps: TypeAlias = "Mapping[str, str]"

ENGINES_ERROR = re.compile(
    r"^(?:docker: |Error response from daemon: |[Ee]rror: |ERROR: |FATAL: +)+"
)
# What engines print beside an error: warnings, podman's log, how to get help.
_BESIDE = re.compile(
    r"warning|\[?deprecat|time=|emulate docker|(?:see|run) '|failed to start containers",
    re.IGNORECASE,
)
# A chain of programs that called each other precedes what the last one said.
_HOOK = re.compile(r"^.* error running \S* ?hook.*?, stderr: (?:Auto-detected mode as '\w+' )?")
_MOST, _HEAD = 400, 120


@dataclass(frozen=True)
class Completed:
    """How a step ended: its exit status and what it printed."""

    status: int
    stdout: str
    stderr: str

    @property
    def complaint(self) -> str:
        """An engine's error, else the last line of stderr (else of stdout), safe to show."""
        if (error := engines_error(error_lines(self.stderr))) is not None:
            return error
        said = printable(self.stderr).strip() or printable(self.stdout).strip()
        return said.splitlines()[-1].strip() if said else f"exit status {self.status}"


def error_lines(text: str) -> list[str]:
    """Return the lines of an engine's first error, else all lines of the program's output."""
    # Warnings are no part of it. The reason may be in any line, as that of a hook is in its last.
    lines = [line.strip() for line in printable(text).splitlines()]
    lines = [line for line in lines if line and not _BESIDE.match(line)]
    errors = [at for at, line in enumerate(lines) if ENGINES_ERROR.match(line)]
    return lines[errors[0] : [*errors, len(lines)][1]] if errors else lines


def engines_error(lines: list[str]) -> str | None:
    """Return an engine's error in one short line, `None` if the lines are no such error."""
    if not lines or not ENGINES_ERROR.match(lines[0]):
        return None
    text = _HOOK.sub("", one_line(" ".join(lines)))
    text = ENGINES_ERROR.sub("", text, count=1).removesuffix(": unknown")
    return text if len(text) <= _MOST else f"{text[:_HEAD]} … {text[_HEAD - _MOST :]}"


class Host(Protocol):
    """A machine that runs scripts."""

    @property
    def name(self) -> str:
        """The destination as it was typed after `ssh`."""

    def run(
        self, steps: Steps, *, timeout: float = SCRIPT_SECONDS, limit: int = OUTPUT_BYTES
    ) -> dict[str, Completed]:
        """Run `steps` (POSIX sh by name) in order in one round trip; return how each ended.

        The timeout in seconds and the limit in bytes of output are for all steps together
        (`JlrError`: one was exceeded, or the shell ended early; `Unreachable`: no connection).
        """


def run_script(host: Host, script: str, *, timeout: float = SCRIPT_SECONDS) -> Completed:
    """Run a script of one step, for at most `timeout` seconds (see `Host.run`)."""
    return host.run({"script": script}, timeout=timeout)["script"]


def attempt(host: Host, script: str) -> None:
    """Run a script that puts something in order; go on if it cannot be run."""
    with suppress(JlrError):
        run_script(host, script)


# ASCII's own separators, which JSON and file names rarely hold: a field ends with the unit
# separator, a record with the record separator, and a group of records with the group separator.
# Scripts take them out of any text that others on the host may choose.
FIELD, RECORD, GROUP = "\037", "\036", "\035"
# The same as `printf` and `tr` of a script read them.
PRINT_FIELD, PRINT_RECORD, PRINT_GROUP = "\\037", "\\036", "\\035"
# A shell function that prints a short text file. With a process for each, as `cat` would be, a list
# of a hundred jobs takes seconds.
PRINT_FILE = """\
print_file() {
  line=
  while IFS= read -r line; do printf '%s\\n' "$line"; done <"$1" && printf %s "$line"
}
"""
TAKE_OUT = f"tr -d '{PRINT_GROUP}{PRINT_RECORD}{PRINT_FIELD}'"
# What reading an answer of another form than expected raises.
ODD = (
    *(ValueError, LookupError, TypeError, AttributeError, RecursionError),
    *(ArithmeticError, struct.error),  # a number that is too large, a length that is wrong
)


class OddAnswer(JlrError):
    """A program on the host answered in a form that it never has."""


@contextmanager
def understood(program: str) -> Iterator[None]:
    """Raise `OddAnswer` where an answer is not of the form that its reader expects."""
    try:
        yield
    except ODD as error:
        why = f"cannot read the answer of {program} on the host: {one_line(str(error))[:200]}"
        hint = "`jlr --verbose …` shows the commands; run them there by hand"
        raise OddAnswer(why, hint=hint) from error


def records(output: str) -> list[list[str]]:
    """Return the fields of each record; text behind the last record is not one."""
    return [record.split(FIELD) for record in output.split(RECORD)[:-1]]
