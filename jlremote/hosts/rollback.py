"""Rollback: a command undoes its own steps when a later one fails, or Ctrl-C ends it.

Ctrl-C must arrive, and one that is pressed twice must not stop the clean-up halfway. A later one
means it: the host may not answer any more.
"""

from __future__ import annotations

import atexit
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress

from jlremote.errors import JlrError

# After this time of clean-up another Ctrl-C is meant.
UNDISTURBED_SECONDS = 1.0
UNDONE = "interrupted"
LEFT = "interrupted again: some of it may be left; `jlr list` shows the sessions"


@contextmanager
def undone_on_failure() -> Iterator[ExitStack]:
    """Yield a stack of callbacks that undo steps; they run, in reverse order, if the block fails.

    Push a callback before its step: Ctrl-C may come before the step's answer. The failure that is
    raised is the block's own.
    """
    undo = ExitStack()
    try:
        yield undo
    except BaseException as failure:
        if isinstance(failure, KeyboardInterrupt) and not failure.args:
            failure.args = (UNDONE,)
        with undisturbed(undo), suppress(JlrError):
            undo.close()
        raise


def let_ctrl_c_through() -> None:
    """Accept Ctrl-C even where a shell script's `&` made the process ignore it."""
    # Child processes inherit ignored signals, so Ctrl-C would not work in JupyterLab's terminals.
    if _in_main_thread() and signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def ignore_ctrl_c() -> None:
    """Ignore Ctrl-C until the process ends."""
    if _in_main_thread():
        signal.signal(signal.SIGINT, lambda *_: None)
        atexit.register(signal.signal, signal.SIGINT, signal.SIG_IGN)


def undisturbed(undo: ExitStack | None = None) -> AbstractContextManager[None]:
    """Ignore Ctrl-C during the first second of a clean-up; a later one ends it at once."""
    since = time.monotonic()

    def ignore_at_first() -> None:
        if time.monotonic() - since > UNDISTURBED_SECONDS:
            if undo is not None:
                undo.pop_all()  # it would call the rest in spite of the exception
            raise KeyboardInterrupt(LEFT)

    return on_ctrl_c(ignore_at_first)


@contextmanager
def on_ctrl_c(then: Callable[[], None]) -> Iterator[None]:
    """Call `then` at each Ctrl-C during a `with` block of the main thread."""
    if not _in_main_thread():
        yield
        return
    before = signal.signal(signal.SIGINT, lambda *_: then())
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def _in_main_thread() -> bool:
    return threading.current_thread() is threading.main_thread()
