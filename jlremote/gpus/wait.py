"""`--wait`: a place in the queue for a host's GPUs, and the GPUs once it is their turn.

The place of a waiting `jlr start` is kept by a program on the host. When its turn comes that holds
the GPUs for half an hour at most. The start that waits takes them over at once, and so does the
next one of the same session if that start is gone. It is listed as a job of the session's name, so
that `jlr stop` can end it. A `jlr run` that stays, and hosts without a Python for it, have
their place kept from here.
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable
from contextlib import AbstractContextManager, suppress
from dataclasses import astuple
from typing import Any

from jlremote.errors import Busy, JlrError, LinkLost, Unreachable
from jlremote.gpus import leases, taking
from jlremote.gpus.choice import Chosen
from jlremote.gpus.inventory import Inventory, how_many
from jlremote.gpus.leases import Lease, QueueTicket
from jlremote.gpus.taking import Taken, Wish
from jlremote.hosts.requests import StartContext
from jlremote.place.host import kept_jobs
from jlremote.place.host.contract import run_script, understood
from jlremote.place.host.kept_jobs import ProcessPlan
from jlremote.text import one_line
from jlremote.untrusted import document

HOLD_SECONDS = 1800
_AWAY = (LinkLost, Unreachable)  # which is no reason to give up


def plan(wish: Wish, seconds: float, why: str) -> dict[str, Any]:
    """Return what a waiter on the host is to do; `why` says why it has to wait."""
    return {
        "host": wish.host.name,
        "name": wish.name,
        "gpus": wish.asked.text,
        "engines": list(wish.engines),
        "within": astuple(wish.within) if wish.within else None,
        "seconds": seconds,
        "why": why,
    }


def in_turn(
    start: StartContext,
    wish: Wish,
    take: Callable[[str | None, Inventory | None], Taken],
    found: Inventory,
    *,
    holds: bool,
) -> Taken:
    """Return what `take` gives as soon as it is this start's turn.

    `take` is called with the random word of the start's place in the queue and what the host has
    just said, and raises `Busy` while it has to wait. Losing the connection for a while does not
    lose the place; with `holds` a program on the host keeps it, if that has a Python for it.

    Raises:
        Busy: the time of `--wait` is over.
        JlrError: the program was ended.
    """
    try:
        return take(None, found)
    except Busy as busy:
        first = busy
    if holds and _waits_on_host(start, wish, first):
        taken = _await(start, wish)
    else:
        taken = _wait_here(start, wish, take, first)
    if start.request.notify:  # the person may have gone for a walk
        text = f"{how_many(wish.count)} became free: `{start.name}` begins"
        start.context.progress.announce(start.request.host, text)
    return taken


def pick_up(start: StartContext, wish: Wish, found: Inventory) -> Taken | None:
    """Take over what an earlier start of the session left: GPUs, or with `--wait` its place.

    A holder of other GPUs is ended. `found` is what the host has just said.
    """
    if not _may_be_there(start, found):
        return None
    told, alive = _look(start)
    if told is None or (alive and "held" not in told and start.request.wait is None):
        return None
    if not alive or told["start"] != wish.asked.text:
        _end(start)
        return None
    start.undo.callback(_end, start)
    start.note(f"an earlier start of `{start.name}` left its place in the queue")
    return _await(start, wish)


def _wait_here(
    start: StartContext,
    wish: Wish,
    take: Callable[[str | None, Inventory | None], Taken],
    first: Busy,
) -> Taken:
    limit, tell = start.request.wait or 0.0, _teller(start)

    def about_to_stand(ticket: QueueTicket) -> None:
        start.undo.callback(taking.leave, wish, ticket)  # whatever ends the step that waits

    with _step(start, wish):
        return taking.take_in_turn(wish, limit, take, tell, first, _AWAY, about_to_stand)


def _waits_on_host(start: StartContext, wish: Wish, busy: Busy) -> bool:
    """Begin the program on the host that waits and holds; return whether it can run there."""
    holding = plan(wish, start.request.wait or 0.0, busy.message) | {"hold": HOLD_SECONDS}
    shown = f"jlr start {wish.host.name} {start.name}"
    begun = ProcessPlan(
        start.name, (), shown, gpus=wish.asked.text, mark=secrets.token_hex(8), wait=holding
    )
    start.undo.callback(_end, start)  # Ctrl-C gives the place up
    # What an earlier one has left there gives way to it.
    steps = {"earlier": _ending(start), "launch": kept_jobs.launch(begun)}
    return start.host.run(steps)["launch"].status == 0


def _await(start: StartContext, wish: Wish) -> Taken:
    """Wait for the session's program on the host, and take its GPUs over."""
    tell = _teller(start)
    with _step(start, wish):
        while True:
            with suppress(*_AWAY):
                told, alive = _look(start)
                if told is None or not alive:
                    raise _ended(start, told)
                if "held" in told:
                    return _take_over(start, wish, told["held"])
                tell(told.get("place"), str(told.get("why", "")))
            time.sleep(taking.PAUSE_SECONDS)


def _step(start: StartContext, wish: Wish) -> AbstractContextManager[None]:
    return start.context.progress.step(f"Wait for {how_many(wish.count)} on {wish.host.name}")


def _teller(start: StartContext) -> Callable[[object, str], None]:
    """Return the function that shows the place in the queue, as a note where it has changed."""
    shown: object = None

    def tell(place: object, why: str) -> None:
        nonlocal shown
        why = one_line(why)
        if place is not None and place != shown:
            start.note(f"number {place} in the queue: {why}")
            shown = place
        start.context.progress.advance(why if place is None else f"number {place}; {why}")

    return tell


def _may_be_there(start: StartContext, found: Inventory) -> bool:
    """Return whether the host shows a lease or a place of this user and session."""
    mine = (start.name, found.user)
    claims = (claim for device in found.devices for claim in device.claims)
    places = ((place.session, place.user) for place in found.queue)
    return mine in places or mine in ((claim.name, claim.user) for claim in claims if claim.lease)


def _look(start: StartContext) -> tuple[dict[str, Any] | None, bool]:
    """Return what the session's waiter tells, and whether it is alive; `None` if there is none.

    `gpus.waiter_program` says what it tells.
    """
    printed = run_script(start.host, kept_jobs.look(start.name))
    with suppress(ValueError):
        told = document(printed.stdout)
        if isinstance(told, dict) and "start" in told:
            return told, printed.status == 0
    return None, False


def _take_over(start: StartContext, wish: Wish, held: dict[str, Any]) -> Taken:
    """Make the lease that of this start, and end its holder."""
    with understood("the waiting start"):
        kinds = ("uuids", "places")
        chosen = Chosen(*(tuple(map(str, held[kind])) for kind in kinds))
        word, boot = (None if held[key] is None else str(held[key]) for key in ("word", "boot"))
    lease = None
    steps = {"end": _ending(start)}
    if word is not None:
        lease = Lease(start.name, chosen.uuids, word, boot or "")
        start.undo.callback(taking.release, start.host, lease)
        steps = {"lease": leases.keep(lease, 0, "0"), **steps}
    start.host.run(steps)
    return Taken(chosen, taking.ask(wish.host, wish.engines), lease)


def _ended(start: StartContext, told: dict[str, Any] | None) -> JlrError:
    why = told.get("end") if told is not None else None
    _end(start)
    if why is None:
        return JlrError(f"the wait of `{start.name}` was ended on `{start.request.host}`")
    return Busy(one_line(str(why)), hint="run the command again with a longer `--wait`")


def _end(start: StartContext) -> None:
    with suppress(JlrError):
        run_script(start.host, _ending(start))


def _ending(start: StartContext) -> str:
    return kept_jobs.take_back_if(start.name, '"start": ')
