"""The place of a waiting `jlr start`, which a program on the host keeps.

When its turn comes it holds the GPUs for half an hour at most. The start that waits takes them over
at once, and so does the next one of the same session if that start is gone. It is listed as a job
of the session's name, so that `jlr stop` can end it.
"""

from __future__ import annotations

import secrets
import time
from contextlib import suppress
from dataclasses import astuple, dataclass
from typing import Any

from jlremote.errors import Busy, JlrError, LinkLost, Unreachable
from jlremote.gpus import leases
from jlremote.gpus.choice import Chosen
from jlremote.gpus.inventory import Inventory
from jlremote.gpus.leases import Lease
from jlremote.gpus.usage import how_many
from jlremote.gpus.waiting import taking
from jlremote.gpus.waiting.taking import Taken, Wish
from jlremote.host.answers import understood
from jlremote.host.contract import run_script
from jlremote.jobs import processes
from jlremote.jobs.processes import ProcessPlan
from jlremote.text import one_line
from jlremote.untrusted import document
from jlremote.workflow.container.start_context import StartContext

HOLD_SECONDS = 1800


@dataclass(frozen=True)
class _Holder:
    """A session's holder, as it is right now."""

    told: dict[str, Any]  # see `gpus.waiting.waiter_program`
    alive: bool

    @property
    def waits(self) -> bool:
        return self.alive and "held" not in self.told


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


def pick_up(start: StartContext, wish: Wish, found: Inventory) -> Taken | None:
    """Take over what an earlier start of the session left: GPUs, or with `--wait` its place.

    A holder of other GPUs is ended. `found` is what the host has just said.
    """
    if not _may_be_there(start, found):
        return None
    holder = _look(start)
    if holder is None or (holder.waits and start.request.wait is None):
        return None
    if not holder.alive or holder.told["start"] != wish.asked.text:
        _end(start)
        return None
    start.undo.callback(_end, start)
    start.note(f"an earlier start of `{start.name}` left its place in the queue")
    return _await(start, wish, holder)


def wait(start: StartContext, wish: Wish, busy: Busy) -> Taken | None:
    """Wait by a program on the host until it is this start's turn; `None` if it cannot run there.

    Raises:
        Busy: the time of `--wait` is over.
        JlrError: the program was ended.
    """
    holding = plan(wish, start.request.wait or 0.0, busy.message) | {"hold": HOLD_SECONDS}
    shown = f"jlr start {wish.host.name} {start.name}"
    begun = ProcessPlan(
        start.name, (), shown, gpus=wish.asked.text, mark=secrets.token_hex(8), wait=holding
    )
    start.undo.callback(_end, start)  # Ctrl-C gives the place up
    # What an earlier one has left there gives way to it.
    steps = {"earlier": _ending(start), "launch": processes.launch(begun)}
    done = start.host.run(steps)["launch"]
    return _await(start, wish, None) if done.status == 0 else None


def _await(start: StartContext, wish: Wish, holder: _Holder | None) -> Taken:
    told: object = None
    with start.context.progress.step(f"Wait for {how_many(wish.count)} on {wish.host.name}"):
        while True:
            with suppress(LinkLost, Unreachable):
                holder = holder or _look(start)
                if holder is None or not holder.alive:
                    raise _ended(start, holder)
                if "held" in holder.told:
                    return _take_over(start, wish, holder.told["held"])
                place, why = holder.told.get("place"), one_line(str(holder.told.get("why", "")))
                if place is not None and place != told:
                    start.note(f"number {place} in the queue: {why}")
                    told = place
                start.context.progress.advance(why if place is None else f"number {place}; {why}")
            holder = None
            time.sleep(taking.PAUSE_SECONDS)


def _may_be_there(start: StartContext, found: Inventory) -> bool:
    """Return whether the host shows a lease or a place of this user and session."""
    mine = (start.name, found.user)
    claims = (claim for device in found.devices for claim in device.claims)
    places = ((place.session, place.user) for place in found.queue)
    return mine in places or mine in ((claim.name, claim.user) for claim in claims if claim.lease)


def _look(start: StartContext) -> _Holder | None:
    """Return the session's holder, `None` if there is none."""
    printed = run_script(start.host, processes.look(start.name))
    with suppress(ValueError):
        told = document(printed.stdout)
        if isinstance(told, dict) and "start" in told:
            return _Holder(told, printed.status == 0)
    return None


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


def _ended(start: StartContext, holder: _Holder | None) -> JlrError:
    why = holder.told.get("end") if holder is not None else None
    _end(start)
    if why is None:
        return JlrError(f"the wait of `{start.name}` was ended on `{start.request.host}`")
    return Busy(one_line(str(why)), hint="run the command again with a longer `--wait`")


def _end(start: StartContext) -> None:
    with suppress(JlrError):
        run_script(start.host, _ending(start))


def _ending(start: StartContext) -> str:
    return processes.take_back_if(start.name, '"start": ')
