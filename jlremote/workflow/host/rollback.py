"""Rollback: a command undoes its own steps when a later one fails, or Ctrl-C ends it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress

from jlremote.errors import JlrError
from jlremote.workflow.host.interrupts import undisturbed


@contextmanager
def undone_on_failure() -> Iterator[ExitStack]:
    """Yield a stack of callbacks that undo steps; they run, in reverse order, if the block fails.

    Push a callback before its step: Ctrl-C may come before the step's answer. If a callback fails,
    the block's own failure is still the one that is raised.
    """
    undo = ExitStack()
    try:
        yield undo
    except BaseException:
        with undisturbed(), suppress(JlrError):
            undo.close()
        raise
