"""Answers of programs on the host, which may be odd, broken or hostile."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from contextlib import contextmanager

from jlremote.errors import JlrError
from jlremote.text import one_line

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
