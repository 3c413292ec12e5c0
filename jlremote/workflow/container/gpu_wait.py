"""`--wait`: the queue of the starts that want GPUs of a host, first come, first served."""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable
from contextlib import suppress
from typing import TypeVar

from jlremote.errors import Busy, JlrError, LinkLost, Unreachable
from jlremote.gpus.usage import how_many
from jlremote.gpus.wait_queue import QueueTicket, ahead
from jlremote.host.contract import run_script
from jlremote.text import one_line
from jlremote.times import in_words
from jlremote.workflow.container.start_context import StartContext
from jlremote.workflow.host.gpus import ask

PAUSE_SECONDS = 5.0

T = TypeVar("T")


def in_turn(start: StartContext, count: int, take: Callable[[str | None], T]) -> T:
    """Return what `take` gives as soon as it is this start's turn.

    `take` is called with the word of the start's place in the queue, and raises `Busy` while it has
    to wait. Losing the connection for a while does not lose the place.

    Raises:
        Busy: the time of `--wait` is over.
    """
    try:
        return take(None)
    except Busy as busy:
        ticket, last = _enter(start, count), busy
    limit = start.request.wait or 0.0
    until = time.monotonic() + limit
    told: int | None = None
    try:
        with start.context.progress.step(f"Wait for {how_many(count)} on {start.request.host}"):
            while time.monotonic() < until:
                with suppress(LinkLost, Unreachable):
                    place = _stand(start, ticket)
                    if place != told:
                        start.note(f"number {place} in the queue: {one_line(last.message)}")
                    told = place
                    try:
                        taken = take(ticket.word)
                    except Busy as busy:
                        last = busy
                        start.context.progress.advance(f"number {place}; {one_line(busy.message)}")
                    else:
                        _tell(start, count)
                        return taken
                time.sleep(PAUSE_SECONDS)
    finally:
        _leave(start, ticket)
    raise Busy(f"no GPUs after {in_words(int(limit))}: {last.message}", hint=last.hint)


def _tell(start: StartContext, count: int) -> None:
    """Tell the person, who may have gone for a walk, that the wait is over."""
    if start.request.notify:
        text = f"{how_many(count)} became free: `{start.name}` begins"
        start.context.progress.announce(start.request.host, text)


def _enter(start: StartContext, count: int) -> QueueTicket:
    found = ask(start.host)
    first = min(found.gpus, key=lambda gpu: gpu.index).whole.uuid
    ticket = QueueTicket(first, start.name, count, secrets.token_hex(4), found.boot)
    # Ctrl-C and a kill of the step that waits give the place up as well.
    start.undo.callback(_leave, start, ticket)
    return ticket


def _stand(start: StartContext, ticket: QueueTicket) -> int:
    """Keep the place in the queue, and return its number."""
    done = run_script(start.host, ticket.stand())
    if done.status != 0:
        raise JlrError(
            f"cannot wait for GPUs on `{start.request.host}`: {done.complaint}",
            hint="leave out `--wait`",
        )
    return len(ahead(ask(start.host).queue, ticket.word)) + 1


def _leave(start: StartContext, ticket: QueueTicket) -> None:
    with suppress(JlrError):
        run_script(start.host, ticket.leave())
