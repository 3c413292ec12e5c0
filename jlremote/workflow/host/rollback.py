"""What a command takes back of its own doing when a later step fails, or Ctrl-C ends it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress

from jlremote.errors import JlrError
from jlremote.workflow.host.interrupts import undisturbed


@contextmanager
def undone_on_failure() -> Iterator[ExitStack]:
    """Give a stack of what is to be taken back, in reverse order, should the block fail.

    What is about to be done is put on it first: Ctrl-C may come before there is an answer. Where it
    cannot be taken back the block's own failure is told all the same.
    """
    undo = ExitStack()
    try:
        yield undo
    except BaseException:
        with undisturbed(), suppress(JlrError):
            undo.close()
        raise
