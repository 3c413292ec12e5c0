"""`--wait` of a command that stays: it keeps its place in the queue for a host's GPUs from here."""

from __future__ import annotations

from collections.abc import Callable

from jlremote.errors import Busy, LinkLost, Unreachable
from jlremote.gpus.inventory import Inventory
from jlremote.gpus.usage import how_many
from jlremote.gpus.waiting import taking
from jlremote.gpus.waiting.taking import Taken, Wish
from jlremote.text import one_line
from jlremote.workflow.container import gpu_holder
from jlremote.workflow.container.start_context import StartContext


def in_turn(
    start: StartContext,
    wish: Wish,
    take: Callable[[str | None, Inventory | None], Taken],
    found: Inventory,
    *,
    holds: bool,
) -> Taken:
    """Return what `take` gives as soon as it is this start's turn.

    `take` is called with the word of the start's place in the queue and what the host has just
    said, and raises `Busy` while it has to wait. Losing the connection for a while does not lose
    the place; with `holds` a program on the host keeps it, if that has a Python for it.

    Raises:
        Busy: the time of `--wait` is over.
    """
    try:
        return take(None, found)
    except Busy as busy:
        first = busy
    if holds and (taken := gpu_holder.wait(start, wish, first)) is not None:
        _tell(start, wish.count)
        return taken
    ticket = taking.ticket_of(wish, taking.ask(wish.host, wish.engines, within=wish.within))
    # Ctrl-C and a kill of the step that waits give the place up as well.
    start.undo.callback(taking.leave, wish, ticket)
    told: int | None = None

    def tell(place: int, why: str) -> None:
        nonlocal told
        if place != told:
            start.note(f"number {place} in the queue: {one_line(why)}")
            told = place
        start.context.progress.advance(f"number {place}; {one_line(why)}")

    try:
        with start.context.progress.step(f"Wait for {how_many(wish.count)} on {wish.host.name}"):
            limit = start.request.wait or 0.0
            passing = (LinkLost, Unreachable)
            taken = taking.take_in_turn(wish, ticket, limit, take, tell, first, passing)
    finally:
        taking.leave(wish, ticket)
    _tell(start, wish.count)
    return taken


def _tell(start: StartContext, count: int) -> None:
    """Tell the person, who may have gone for a walk, that the wait is over."""
    if start.request.notify:
        text = f"{how_many(count)} became free: `{start.name}` begins"
        start.context.progress.announce(start.request.host, text)
