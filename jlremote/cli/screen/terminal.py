"""Output: answers on stdout, everything else on stderr.

All text goes through `answer` or `tell`, which take out the escape sequences of a host, an image or
a notebook. A job's own output (`program_output`) and that of `jlr shell` have ways of their own.
"""

from __future__ import annotations

import contextlib
import errno
import os
import sys
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any, TextIO

import click

from jlremote.errors import JlrError
from jlremote.text import one_line, reason_of, styled

if TYPE_CHECKING:
    from jlremote.forwards.address import Address
    from jlremote.hosts.context import Context

AS_JSON = "jlremote.as_json"  # the key of `--json` in click's context
_TITLE_LENGTH = 120


def as_json() -> bool:
    """Return whether the command was called with `--json`."""
    context = click.get_current_context(silent=True)
    return bool(context and context.meta.get(AS_JSON))


def answer(text: str, *, newline: bool = True) -> None:
    """Print an answer on stdout and flush it."""
    with writing():
        click.echo(styled(text), nl=newline, color=coloured(sys.stdout))
        sys.stdout.flush()


@contextlib.contextmanager
def writing() -> Iterator[None]:
    """Raise a `JlrError` if the output cannot be written; a broken pipe stays one."""
    try:
        yield
    except BrokenPipeError:
        raise
    except OSError as failure:
        raise JlrError(f"cannot write the output: {reason_of(failure)}") from failure


def answer_each(told: Iterable[tuple[str, Any]], context: Context, *, none: str) -> None:
    """Print lines as they come or, with `--json`, an array of their values, also after an error.

    `none` is the note if there are no lines.
    """
    values = []
    try:
        for line, value in told:
            values.append(value)
            if not as_json():
                answer(line)
    finally:
        if as_json():
            answer_json(values)
    if not values:
        context.progress.note(none)


def answer_json(value: Any, indent: int | None = 2) -> None:
    """Print one JSON value on stdout; without an indent on one line."""
    answer(json_text(value, indent))


def json_text(value: Any, indent: int | None = None) -> str:
    """Return a value as JSON with all control characters escaped."""
    import json

    return json.dumps(value, indent=indent).replace("\x7f", "\\u007f")  # json leaves DEL


def answer_either(text: str, value: Any) -> None:
    """Print `value` with `--json`, else `text`."""
    answer_json(value) if as_json() else answer(text)


def shown(address: Address) -> str:
    """Return the URL to print: the page's own on a terminal, 127.0.0.1 in a pipe.

    A click on macOS may open Safari, which resolves no other one either.
    """
    clickable = sys.stdout.isatty() and sys.platform != "darwin"
    return address.page if clickable else address.url


def tell(text: str) -> None:
    """Print a message on stderr; a closed stderr is no error."""
    try:
        click.echo(styled(text), err=True, color=coloured(sys.stderr))
    except OSError as failure:
        if failure.errno not in (errno.EPIPE, errno.ENOSPC, errno.EIO, errno.EBADF):
            raise


def announce(title: str, text: str) -> str | None:
    """Show a notice on the desktop, else by the terminal's bell and title.

    Return `desktop` or `terminal`, or `None` if neither is possible.
    """
    from jlremote.laptop import desktop

    if desktop.shown(title, text):
        return "desktop"
    if not watched(sys.stderr):
        return None
    # OSC 2 (xterm's control sequences); what is in it has no control characters.
    with contextlib.suppress(OSError):
        sys.stderr.write(f"\x1b]2;{one_line(f'{title}: {text}')[:_TITLE_LENGTH]}\x07\x07")
        sys.stderr.flush()
    return "terminal"


def coloured(stream: TextIO) -> bool:
    """Return whether `stream` is a terminal that shows colours (https://no-color.org)."""
    return watched(stream) and not os.environ.get("NO_COLOR")


def watched(stream: TextIO) -> bool:
    """Return whether `stream` is a terminal that can move its cursor."""
    return stream.isatty() and os.environ.get("TERM") not in (None, "", "dumb")


def takes(stream: TextIO, sign: str) -> bool:
    """Return whether the encoding of `stream` has a sign."""
    try:
        sign.encode(stream.encoding or "ascii")
    except UnicodeEncodeError:
        return False
    return True
