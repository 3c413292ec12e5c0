"""Ctrl-C in long commands: it must arrive, and it must not stop the clean-up halfway."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

# After this time a second Ctrl-C is meant: the host may not answer any more.
UNDISTURBED_SECONDS = 10.0


def let_ctrl_c_through() -> None:
    """Accept Ctrl-C even where a shell script's `&` made the process ignore it.

    Child processes inherit ignored signals, so Ctrl-C would not work in JupyterLab's terminals.
    """
    if _in_main_thread() and signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def ignore_ctrl_c() -> None:
    """Ignore Ctrl-C until the process ends."""
    if _in_main_thread():
        signal.signal(signal.SIGINT, _ignore)


@contextmanager
def undisturbed() -> Iterator[None]:
    """Ignore a second Ctrl-C during clean-up, for its first ten seconds."""
    if not _in_main_thread():
        yield
        return
    since = time.monotonic()

    def ignore_at_first(_number: int, _frame: FrameType | None) -> None:
        if time.monotonic() - since > UNDISTURBED_SECONDS:
            raise KeyboardInterrupt

    before = signal.signal(signal.SIGINT, ignore_at_first)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def _in_main_thread() -> bool:
    return threading.current_thread() is threading.main_thread()


def _ignore(_number: int, _frame: FrameType | None) -> None:
    pass
