"""A log file of a failure that nobody expected, fit to be sent to us."""

from __future__ import annotations

import os
import platform
import re
import sys
import time
import traceback

from jlremote import __version__
from jlremote.errors import JlrError
from jlremote.storage import paths
from jlremote.text import one_line, printable

_SECRET = re.compile(
    r"""(?ix)
    ( (?: [\w-]* (?: token | passw(?:or)?d | passphrase | secret | api[_-]?key | xsrf ) [\w-]*
      | authorization )
      ["']? \s* [=:] \s* ["']? (?: (?:bearer|token|basic) \s+ )? )
    [^\s&"',;)}\]]+
    """
)


def write(failure: BaseException) -> tuple[str, str]:
    """Write the log and return what to tell the person: what happened, and where the log is."""
    cause = redacted(one_line(f"{type(failure).__name__}: {failure}"))
    summary = f"jlr failed in a way that it should not ({cause})"
    try:
        path = paths.log_directory() / f"bug-{time.strftime('%Y%m%d-%H%M%S')}-{os.getpid()}.log"
        paths.write_whole(path, _report(failure))
    except JlrError as trouble:
        return summary, f"this is a bug of ours, and its log cannot be kept: {trouble.message}"
    return summary, f"this is a bug of ours; the details are in `{path}`"


def redacted(text: str) -> str:
    """Return `text` with the values of what looks like a secret replaced by `***`."""
    return _SECRET.sub(r"\1***", text)


def _report(failure: BaseException) -> str:
    """Return the report: no arguments of the call and no local variables, they may hold secrets."""
    lines = [
        f"jlr {__version__}, Python {platform.python_version()}, {platform.platform()}",
        f"command: {_command()}",
        "",
        *traceback.format_exception(failure),
    ]
    return redacted(printable("\n".join(line.rstrip("\n") for line in lines))) + "\n"


def _command() -> str:
    """Return the command's name, which is the first plain word; values are nobody's business."""
    return next((word for word in sys.argv[1:] if word.isalpha()), "none")
