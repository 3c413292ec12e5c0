"""Answers of programs on the host, which may be odd, broken or hostile, and records in them."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from contextlib import contextmanager

from jlremote.errors import JlrError
from jlremote.text import one_line

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
    """Raise `OddAnswer` where an answer is not of the form that its reader expects.

    As a decorator it is for functions that only read.
    """
    try:
        yield
    except ODD as error:
        raise OddAnswer(
            f"cannot read the answer of {program} on the host: {one_line(str(error))[:200]}",
            hint="`jlr -v …` shows the commands; run them there by hand",
        ) from error


def records(output: str) -> list[list[str]]:
    """Return the fields of each record; text behind the last record is not one."""
    return [record.split(FIELD) for record in output.split(RECORD)[:-1]]
