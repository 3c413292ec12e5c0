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
_PLAIN = str.maketrans({"✓": "+", "✗": "x", "→": "->", "…": "..."})


def as_json() -> bool:
    """Return whether the command was called with `--json`."""
    context = click.get_current_context(silent=True)
    return bool(context and context.meta.get(AS_JSON))


def answer(text: str, *, newline: bool = True) -> None:
    """Print an answer on stdout and flush it."""
    with writing():
        click.echo(_encodable(text, sys.stdout), nl=newline, color=coloured(sys.stdout))
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


def write_all(file: int, data: bytes) -> None:
    """Write bytes to a file descriptor, as they are."""
    rest = memoryview(data)
    with writing():
        while rest:
            rest = rest[os.write(file, rest) :]


def answer_each(told: Iterable[tuple[str, Any]], context: Context, *, none: str) -> None:
    """Print lines as they come or, with `--json`, an array of their values, also after an error."""
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
    """Return the URL to print: the page's own on a terminal, 127.0.0.1 in a pipe."""
    clickable = sys.stdout.isatty() and sys.platform != "darwin"  # Safari resolves 127.0.0.1 only
    return address.page if clickable else address.url


def tell(text: str) -> None:
    """Print a message on stderr; a closed stderr is no error."""
    try:
        click.echo(_encodable(text, sys.stderr), err=True, color=coloured(sys.stderr))
    except OSError as failure:
        if failure.errno not in (errno.EPIPE, errno.ENOSPC, errno.EIO, errno.EBADF):
            raise


@contextlib.contextmanager
def until_ctrl_c() -> Iterator[None]:
    """Let Ctrl-C end a block that has no other end; what follows begins a line."""
    try:
        yield
    except KeyboardInterrupt:
        if sys.stderr.isatty():
            tell("")


def announce(title: str, text: str) -> str | None:
    """Show a notice on the `desktop`, else by the `terminal`; return which, `None` if neither."""
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


def set_colour(when: str) -> None:
    """Set the variables that ask for colours, for rich too; `when` is `auto`, `always`, `never`."""
    if when != "auto":
        os.environ.pop("NO_COLOR", None)
        os.environ["FORCE_COLOR" if when == "always" else "NO_COLOR"] = "1"


def coloured(stream: TextIO) -> bool:
    """Return whether to print colours (https://no-color.org, https://force-color.org)."""
    no, force = os.environ.get("NO_COLOR"), os.environ.get("FORCE_COLOR")
    return not no and (bool(force) or watched(stream))


def watched(stream: TextIO) -> bool:
    """Return whether `stream` is a terminal that can move its cursor."""
    return stream.isatty() and os.environ.get("TERM") not in (None, "", "dumb")


def takes(stream: TextIO, sign: str) -> bool:
    """Return whether a stream shows a sign; in the C locale only ASCII (Python writes UTF-8)."""
    chosen = [os.environ.get(name, "") for name in ("LC_ALL", "LC_CTYPE", "LANG")]
    chosen = [name for name in chosen if name not in ("", "C.UTF-8")]  # Python's own choice
    in_c = chosen[:1] in (["C"], ["POSIX"])
    encoding = "ascii" if in_c else stream.encoding or "ascii"
    return sign.encode(encoding, "ignore").decode(encoding) == sign


def _encodable(text: str, stream: TextIO) -> str:
    text = styled(text)
    return text if takes(stream, "✓…") else text.translate(_PLAIN)
