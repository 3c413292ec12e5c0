"""`--wait`: a program on the host waits in its queue, and holds the GPUs until they are taken over.

The program is listed as a job, so that `jlr stop` ends it. The start that waits takes the GPUs over
at once, and so does the next one of the same session if that start is gone.
"""

from __future__ import annotations

import time
from contextlib import suppress
from dataclasses import astuple
from typing import Any

from jlremote.errors import Busy, JlrError, NotFound, Unreachable
from jlremote.gpus import leases, taking
from jlremote.gpus.choice import Chosen
from jlremote.gpus.inventory import Inventory, how_many
from jlremote.gpus.leases import Lease
from jlremote.gpus.taking import Taken, Wish
from jlremote.hosts.requests import StartContext
from jlremote.laptop.typed_place import host_word
from jlremote.place.host import kept_jobs
from jlremote.place.host.contract import Completed, Steps, attempt, run_script, understood
from jlremote.place.host.kept_jobs import ProcessPlan
from jlremote.remote.sending import NO_PYTHON, OLDEST
from jlremote.text import one_line
from jlremote.untrusted import document

HOLD_SECONDS = 1800
JOBS_HOLD_SECONDS = 180  # nothing takes over what a `jlr run` that is gone has waited for
LOOK_SECONDS = 1.0
DISK_HINT = "`df -h ~`, `df -i ~` and `quota -s` there show what is full, `mount` what is read-only"


def plan(wish: Wish, seconds: float, why: str) -> dict[str, Any]:
    """Return the plan of a waiter on the host; `why` says why it has to wait."""
    return {
        "host": wish.host.name,
        "name": wish.name,
        "gpus": wish.asked.text,
        "engines": list(wish.engines),
        "within": astuple(wish.within) if wish.within else None,
        "seconds": seconds,
        "why": why,
        "first": {"why": why},  # what the file `waiting` has at first
    }


def in_turn(start: StartContext, wish: Wish, busy: Busy, *, holds: bool) -> Taken:
    """Wait until it is the turn of this start, and return its GPUs; `busy` is why it waits.

    With `holds` the next start of the session may take over what this one leaves behind. Raise
    `Busy` if the time of `--wait` is over, or there is a job of that name; `JlrError` if the host
    cannot run the program, or it was ended.
    """
    hold = HOLD_SECONDS if holds else JOBS_HOLD_SECONDS
    doing = plan(wish, start.request.wait or 0.0, busy.message) | {"hold": hold}
    doing["first"] |= {"start": wish.asked.text}
    words = f"jlr {'start' if holds else 'run'} {wish.host.name} {start.name}"
    job = ProcessPlan(start.name, (), words, gpus=wish.asked.text, mark=start.mark, wait=doing)
    # What an earlier start of the session has left there gives way to it.
    launched(start, job, {"earlier": _ending(start.name)} if holds else {})
    taken = _await(start, wish)
    if start.request.notify:  # the person may have gone for a walk
        text = f"{how_many(wish.count)} became free: `{start.name}` begins"
        start.context.progress.announce(start.request.host, text)
    return taken


def launched(start: StartContext, plan: ProcessPlan, before: Steps | None = None) -> Completed:
    """Launch a job, after the steps that come `before`; return what the host said.

    Raise `Busy` if there is a job of that name, `JlrError` if the host cannot launch it.
    """
    host = start.request.host
    start.undo.callback(attempt, start.host, kept_jobs.take_back(start.name, plan.mark))
    done = start.host.run({**(before or {}), "script": kept_jobs.launch(plan)})["script"]
    if done.status == kept_jobs.TAKEN:
        hint = f"`jlr job rm {host}/{start.name}` deletes it; or choose another name"
        raise Busy(f"a job `{start.name}` already exists", hint=hint)
    if done.status == NO_PYTHON and plan.wait is not None:
        oldest = ".".join(map(str, kept_jobs.WAITERS_PYTHON))
        hint = f"leave out `--wait`; `jlr gpus {host} --watch` shows when GPUs are free"
        raise JlrError(f"`--wait` needs Python {oldest} or later on `{host}`", hint=hint)
    if done.status == NO_PYTHON:
        where = host_word(host) if plan.container is None else f"{host}/{plan.container}"
        what = f"`jlr run` needs Python {'.'.join(map(str, OLDEST))} or later on `{host}`"
        raise NotFound(what, hint=f"`jlr shell {where} --keep -- COMMAND` runs it in tmux")
    if done.status == kept_jobs.NO_FOLDER:
        what = f"cannot write the job's files in your home on `{host}`: {done.complaint}"
        raise JlrError(what, hint=DISK_HINT)
    if done.status != 0:
        raise JlrError(f"cannot start the job on `{host}`: {done.complaint}")
    if plan.wait is not None and "hold" not in plan.wait:
        start.note(f"`{start.name}` waits on the host: {one_line(plan.wait['why'])}")
    return done


def pick_up(start: StartContext, wish: Wish, inventory: Inventory) -> Taken | None:
    """Take over the GPUs that an earlier start of the session holds, or with `--wait` its place."""
    claims = {claim for device in inventory.devices for claim in device.claims if claim.lease}
    there = {(claim.name, claim.user) for claim in claims}
    there |= {(place.session, place.user) for place in inventory.queue}
    if (start.name, inventory.user) not in there:
        return None
    waiter, alive = _look(start)
    if waiter is None or (alive and "held" not in waiter and start.request.wait is None):
        return None
    if not alive or waiter["start"] != wish.asked.text:
        attempt(start.host, _ending(start.name))
        return None
    start.undo.callback(attempt, start.host, _ending(start.name))
    start.note(f"`{start.name}` keeps the place in the queue of its earlier start")
    return _await(start, wish)


def _await(start: StartContext, wish: Wish) -> Taken:
    progress, shown = start.context.progress, None
    with progress.step(f"Wait for {how_many(wish.count)} on {wish.host.name}"):
        while True:
            with suppress(Unreachable):  # which is no reason to give up
                waiter, alive = _look(start)
                if waiter is None or not alive:
                    attempt(start.host, _ending(start.name))
                    if why := (waiter or {}).get("end"):
                        again = "run the command again with a longer `--wait`"
                        raise Busy(one_line(str(why)), hint=again)
                    raise JlrError(f"the wait of `{start.name}` was ended on `{wish.host.name}`")
                if "held" in waiter:
                    return _take_over(start, wish, waiter["held"])
                place, why = waiter.get("place"), one_line(str(waiter.get("why", "")))
                if place is not None and place != shown:
                    start.note(f"number {place} in the queue: {why}")
                    shown = place
                progress.advance(why if place is None else f"number {place}; {why}")
            time.sleep(LOOK_SECONDS)


def _look(start: StartContext) -> tuple[dict[str, Any] | None, bool]:
    printed = run_script(start.host, kept_jobs.look(start.name))
    with suppress(ValueError):
        waiter = document(printed.stdout)
        if isinstance(waiter, dict) and "start" in waiter:
            return waiter, printed.status == 0
    return None, False


def _take_over(start: StartContext, wish: Wish, held: dict[str, Any]) -> Taken:
    with understood("the waiting start"):
        chosen = Chosen(*(tuple(map(str, held[kind])) for kind in ("uuids", "places")))
        word, boot = held["word"], str(held["boot"])
    lease, steps = None, {"end": _ending(start.name)}
    if word is not None:
        lease = Lease(start.name, chosen.uuids, str(word), boot)
        start.undo.callback(attempt, start.host, leases.release(lease))
        steps = {"lease": leases.keep(lease, 0, "0"), **steps}
    start.host.run(steps)
    return Taken(chosen, taking.ask(wish.host, wish.engines, within=wish.within), lease)


def _ending(name: str) -> str:
    return kept_jobs.take_back(name, '"start": ', "waiting")
