"""Output: answers on stdout, everything else on stderr."""

from __future__ import annotations

import errno
import os
import sys
from typing import Any, TextIO

import click

from jlremote.errors import JlrError


def answer(text: str, *, newline: bool = True) -> None:
    """Print an answer on stdout and flush it.

    Raises:
        JlrError: it cannot be written, as on a full disk.
    """
    try:
        click.echo(text, nl=newline, color=coloured(sys.stdout))
        sys.stdout.flush()
    except BrokenPipeError:
        raise
    except OSError as failure:
        raise not_written(failure) from failure


def not_written(failure: OSError) -> JlrError:
    """Return the error for output that cannot be written."""
    reason = (failure.strerror or str(failure)).lower()
    return JlrError(f"cannot write the output: {reason}")


def answer_json(value: Any, indent: int | None = 2) -> None:
    """Print one JSON value on stdout; without an indent on one line."""
    import json

    answer(json.dumps(value, indent=indent))


def answer_either(text: str, value: Any, *, as_json: bool) -> None:
    """Print `value` as JSON or, without `--json`, `text`."""
    answer_json(value) if as_json else answer(text)


def tell(text: str) -> None:
    """Print a message on stderr; a closed stderr is no error."""
    try:
        click.echo(text, err=True, color=coloured(sys.stderr))
    except OSError as failure:
        if failure.errno not in (errno.EPIPE, errno.ENOSPC, errno.EIO, errno.EBADF):
            raise


def coloured(stream: TextIO) -> bool:
    """Return whether `stream` is a terminal that shows colours (https://no-color.org)."""
    return watched(stream) and not os.environ.get("NO_COLOR")


def watched(stream: TextIO) -> bool:
    """Return whether `stream` is a terminal that can move its cursor."""
    return stream.isatty() and os.environ.get("TERM") not in (None, "", "dumb")
