"""The log file of an unexpected failure, without secrets, so that it can be sent to us."""

from __future__ import annotations

import os
import platform
import sys
import time
import traceback

from jlremote import __version__
from jlremote.doctor.redaction import redacted
from jlremote.errors import JlrError
from jlremote.storage import paths
from jlremote.text import one_line, printable


def write(failure: BaseException) -> tuple[str, str]:
    """Write the log; return the error message and the hint that names the log."""
    cause = redacted(one_line(f"{type(failure).__name__}: {failure}"))
    summary = f"jlr failed unexpectedly ({cause})"
    try:
        path = paths.log_directory() / f"bug-{time.strftime('%Y%m%d-%H%M%S')}-{os.getpid()}.log"
        paths.write_whole(path, _report(failure))
    except JlrError as trouble:
        return summary, f"this is a bug in jlr; its log cannot be written: {trouble.message}"
    return summary, f"this is a bug in jlr; the details are in `{path}`"


def _report(failure: BaseException) -> str:
    """Return the report, without arguments and local variables, which may hold secrets."""
    lines = [
        f"jlr {__version__}, Python {platform.python_version()}, {platform.platform()}",
        f"command: {next((word for word in sys.argv[1:] if word.isalpha()), 'none')}",
        "",
        *traceback.format_exception(failure),
    ]
    return redacted(printable("\n".join(line.rstrip("\n") for line in lines))) + "\n"
