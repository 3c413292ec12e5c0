"""Ctrl-C for a workflow that lasts: it must arrive, and it must not cut the cleaning up short."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

# By then it does not come of impatience, and the host may not answer any more.
UNDISTURBED_SECONDS = 10.0


def let_ctrl_c_through() -> None:
    """Take Ctrl-C even where a shell script's `&` has it ignored.

    Ignored signals are inherited: with them no Ctrl-C would work in JupyterLab's terminals either.
    """
    if _in_main_thread() and signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def pass_over_ctrl_c() -> None:
    """Keep further Ctrl-C from interrupting what is left until the process ends."""
    if _in_main_thread():
        signal.signal(signal.SIGINT, _pass_over)


@contextmanager
def undisturbed() -> Iterator[None]:
    """Keep a second Ctrl-C from interrupting what takes a few seconds, unless it takes more."""
    if not _in_main_thread():
        yield
        return
    since = time.monotonic()

    def pass_over_at_first(_number: int, _frame: FrameType | None) -> None:
        if time.monotonic() - since > UNDISTURBED_SECONDS:
            raise KeyboardInterrupt

    before = signal.signal(signal.SIGINT, pass_over_at_first)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def _in_main_thread() -> bool:
    return threading.current_thread() is threading.main_thread()


def _pass_over(_number: int, _frame: FrameType | None) -> None:
    pass
