"""The link's log: its file, how much is written, and the stacks of all threads on request."""

from __future__ import annotations

import faulthandler
import logging
import os
import platform
import shutil
import signal
import sys
from collections.abc import Mapping
from logging.handlers import RotatingFileHandler
from pathlib import Path

from jlremote import __version__
from jlremote.text import printable

VARIABLE = "JLR_LOG"
MOST_BYTES = 1 << 20  # of the file, and as much of the one before

log = logging.getLogger(__name__)


def begin(path: Path, host: str, environment: Mapping[str, str]) -> None:
    """Log to `path`, in detail with `JLR_LOG=debug`; SIGUSR1 adds the stacks of all threads.

    The command that starts the link gives it this file as stderr, too: what Python itself reports
    is there, and the stacks.
    """
    handler = RotatingFileHandler(path, maxBytes=MOST_BYTES, backupCount=1, encoding="utf-8")
    handler.rotator = _set_aside
    handler.setFormatter(_Printable("%(asctime)s %(levelname)s %(name)s: %(message)s"))
    detailed = environment.get(VARIABLE, "").lower() == "debug"
    logging.basicConfig(handlers=[handler], level=logging.DEBUG if detailed else logging.INFO)
    path.chmod(0o600)
    if not detailed:
        # paramiko's INFO lines repeat those of the supervisor.
        logging.getLogger("paramiko").setLevel(logging.WARNING)
    log.info("link to %s: %s", host, _versions())
    _dump_stacks_on_request()


def _versions() -> str:
    python = f"Python {platform.python_version()}"
    return f"jlr {__version__}, {python}, {platform.platform()}, pid {os.getpid()}"


def _set_aside(source: str, target: str) -> None:
    """Copy and empty a full log: stderr has the file open, and Windows renames no open file."""
    shutil.copy(source, target)
    os.truncate(source, 0)


def _dump_stacks_on_request() -> None:
    faulthandler.enable()  # where the interpreter crashes
    if sys.platform != "win32":
        # `faulthandler.register` reads the frames while threads run, and crashed links so.
        signal.signal(signal.SIGUSR1, lambda *_: faulthandler.dump_traceback())


class _Printable(logging.Formatter):
    """Formats a record without the control characters that a server's words may have."""

    def format(self, record: logging.LogRecord) -> str:
        return printable(super().format(record))
