"""Pools: several hosts under one name, as `@lab`, asked side by side."""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Generic, TypeVar

from jlremote.errors import JlrError, NeedsAuthentication, Unreachable
from jlremote.hosts.context import Context
from jlremote.hosts.links import ASKS_NOTHING
from jlremote.text import one_line

# How long the others wait for a host that does not answer.
PATIENCE_SECONDS = 10.0

T = TypeVar("T")


@dataclass(frozen=True)
class PoolAnswer(Generic[T]):
    """The answer of one host of a pool, or why there is none."""

    host: str
    answer: T | None
    error: JlrError | None = None


def ask_each(
    hosts: Sequence[str],
    question: Callable[[str, Context], T],
    context: Context,
    *,
    after_first: float = PATIENCE_SECONDS,
) -> list[PoolAnswer[T]]:
    """Return the answers of hosts to `question`, which are asked at the same time.

    Once one has answered, the others have `after_first` seconds. A host that needs the user is
    asked once more when the others have answered, one by one.
    """
    quiet = replace(context, asker=ASKS_NOTHING)
    with context.progress.step(f"Ask {', '.join(hosts)}"):
        found = _side_by_side(hosts, question, quiet, after_first)
    for number, one in enumerate(found):
        if isinstance(one.error, NeedsAuthentication):
            found[number] = _answer(one.host, question, context)
    return found


def _side_by_side(
    hosts: Sequence[str],
    question: Callable[[str, Context], T],
    context: Context,
    after_first: float,
) -> list[PoolAnswer[T]]:
    answers: queue.SimpleQueue[PoolAnswer[T]] = queue.SimpleQueue()

    def ask(host: str) -> None:
        answers.put(_answer(host, question, context))

    for host in hosts:  # a daemon: a host that never answers keeps no command from ending
        threading.Thread(target=ask, args=(host,), daemon=True).start()
    found = dict[str, PoolAnswer[T]]()
    began = time.monotonic()
    until = began + PATIENCE_SECONDS
    with suppress(queue.Empty):
        for _ in hosts:
            one = answers.get(timeout=max(0, until - time.monotonic()))
            found[one.host] = one
            if one.answer is not None:
                until = min(until, time.monotonic() + after_first)
    silent = Unreachable(f"no answer within {time.monotonic() - began:.0f} s")
    return [found.get(host) or PoolAnswer(host, None, silent) for host in hosts]


def _answer(host: str, question: Callable[[str, Context], T], context: Context) -> PoolAnswer[T]:
    try:
        return PoolAnswer(host, question(host, context))
    except JlrError as error:
        return PoolAnswer(host, None, error)


def note_silent(answers: Sequence[PoolAnswer[T]], context: Context) -> None:
    """Report each host of a pool that did not answer; raise the last one's error if none has."""
    silent = [(one.host, one.error) for one in answers if one.error is not None]
    for host, error in silent:
        context.progress.note(f"cannot ask `{host}`: {one_line(error.message)}")
    if silent and len(silent) == len(answers):
        raise silent[-1][1]
