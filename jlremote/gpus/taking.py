"""The taking of GPUs that a session or job wants: choice and lease, at once or in its turn."""

from __future__ import annotations

import random
import re
import secrets
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass

from jlremote.errors import Busy, JlrError
from jlremote.gpus import leases
from jlremote.gpus.assigned import Within
from jlremote.gpus.choice import CannotTell, Chosen, GpuRequest, choose, refuse_to_overtake
from jlremote.gpus.inventory import Inventory
from jlremote.gpus.leases import Lease, QueueTicket, ahead
from jlremote.gpus.snapshot import read
from jlremote.gpus.snapshot_script import Engines, snapshot
from jlremote.place.host.contract import Host, run_script
from jlremote.place.host.shell_text import command_line
from jlremote.times import in_words

# A driver that sleeps between questions takes seconds for each GPU.
ASK_SECONDS = 90.0
# Another start takes a second or two; then its container runs, or it has failed.
TRIES = 8
RACE_SECONDS = (0.1, 0.7)
PAUSE_SECONDS = 5.0


@dataclass(frozen=True)
class Wish:
    """The GPUs that a session or job wants, and where."""

    host: Host
    name: str  # the session's or job's
    asked: GpuRequest
    engines: Engines  # the engines to ask for containers
    share: bool = False  # whether those that others use may be taken
    within: Within | None = None  # the container whose own ones they are to be
    # The process of the host that waits for them, by its pid and start, if one does.
    process: tuple[int, str] = (0, "0")

    @property
    def count(self) -> int:
        return self.asked.count or len(self.asked.names)


@dataclass(frozen=True)
class Taken:
    """The GPUs that were taken."""

    chosen: Chosen
    found: Inventory
    lease: Lease | None = None  # `None` for shared ones, and where no lease can be made


def ask(
    host: Host,
    engines: Engines,
    note: Callable[[str], object] | None = None,
    within: Within | None = None,
) -> Inventory:
    """Return the GPUs of a host, or of a container, with their users, in one round trip.

    With `note` leases of this user's containers that are missing are made again, and told.
    """
    found = read(run_script(host, snapshot(engines), timeout=ASK_SECONDS).stdout, host.name, within)
    for one in found.unleased if note else ():
        lease = Lease(one.name, one.uuids, secrets.token_hex(4), found.boot)
        pid = ("inspect", "--format={{.State.Pid}}", one.id)
        asked = " || ".join(command_line((*engine, *pid)) for engine in engines)
        script = f"status=0\n{leases.keep_for(lease, ('sh', '-c', asked))}echo made\n"
        if note and run_script(host, script).stdout.strip():
            note(
                f"the lease of the GPUs of `{one.name}` on `{host.name}` was missing, and is made "
                "again: they may have been given to others meanwhile"
            )
    return found


def take(
    wish: Wish,
    word: str | None,
    about_to_lease: Callable[[Lease], object],
    note: Callable[[str], None],
    found: Inventory | None = None,
) -> Taken:
    """Choose and lease GPUs, again if another start leased the same at the same moment.

    `word` is that of the place in the queue, `None` for none, and `found` is what the host has said
    a moment ago. `about_to_lease` is told of each lease before it is made.

    Raises:
        Busy: the GPUs are in use, or others wait for them.
        NotFound: the host has no such GPU.
        CannotAsk: the host cannot say which are free.
    """
    for left in reversed(range(TRIES)):
        found = found or ask(wish.host, wish.engines, within=wish.within)
        try:
            chosen = choose(wish.asked, found, wish.host.name, share=wish.share)
            if not wish.share:
                refuse_to_overtake(wish.host.name, len(chosen.uuids), found, word)
        except Busy:
            if not left or not _others_start(found):
                raise
        else:
            if wish.share:
                return Taken(chosen, found)
            taken = _leased(wish, chosen, found, about_to_lease, note)
            if taken is not None:
                return taken
        found = None
        time.sleep(random.uniform(*RACE_SECONDS))  # noqa: S311  # so that two do not meet again
    raise Busy(f"lost the race for GPUs on `{wish.host.name}`", hint="run the command again")


def take_in_turn(
    wish: Wish,
    seconds: float,
    attempt: Callable[[str, Inventory], Taken],
    tell: Callable[[int, str], None],
    last: Busy,
    passing: tuple[type[JlrError], ...],
    about_to_stand: Callable[[QueueTicket], object] = lambda _: None,
) -> Taken:
    """Stand in the queue until it is this wish's turn; return what `attempt` took.

    `attempt` is given the word of the place and what the host has just said. `tell` is given the
    place in the queue, the first is 1, and why the wish has to wait. Errors in `passing` are no
    reason to give up. `about_to_stand` is told of the place before it is taken.

    Raises:
        Busy: the time is over.
    """
    until, ticket = time.monotonic() + seconds, None
    try:
        while time.monotonic() < until:
            with suppress(CannotTell, *passing):
                if ticket is None:
                    ticket = _ticket(wish)
                    about_to_stand(ticket)
                found = _stand(wish, ticket)
                place = len(ahead(found.queue, ticket.word)) + 1
                tell(place, last.message)
                try:
                    return attempt(ticket.word, found)
                except Busy as busy:
                    last = busy
                    tell(place, last.message)
            time.sleep(min(PAUSE_SECONDS, max(0.0, until - time.monotonic())))
    finally:
        if ticket is not None:
            leave(wish, ticket)
    raise Busy(f"no GPUs after {in_words(int(seconds))}: {last.message}", hint=last.hint)


def _ticket(wish: Wish) -> QueueTicket:
    found = ask(wish.host, wish.engines, within=wish.within)
    word = secrets.token_hex(4)
    return QueueTicket(found.line, wish.name, wish.count, word, found.boot, *wish.process)


def leave(wish: Wish, ticket: QueueTicket) -> None:
    """Give a place in the queue up."""
    with suppress(JlrError):
        run_script(wish.host, ticket.leave())


def release(host: Host, lease: Lease) -> None:
    """Delete a lease."""
    with suppress(JlrError):
        run_script(host, leases.release(lease))


def _stand(wish: Wish, ticket: QueueTicket) -> Inventory:
    """Keep the place in the queue, and return what the host says then."""
    steps = {"stand": ticket.stand(), "gpus": snapshot(wish.engines)}
    done = wish.host.run(steps, timeout=ASK_SECONDS)
    if done["stand"].status != 0:
        raise JlrError(
            f"cannot wait for GPUs on `{wish.host.name}`: {done['stand'].complaint}",
            hint="leave out `--wait`",
        )
    return read(done["gpus"].stdout, wish.host.name, wish.within)


def _others_start(found: Inventory) -> bool:
    return any(claim.kind == "start" for device in found.devices for claim in device.claims)


def _leased(
    wish: Wish,
    chosen: Chosen,
    found: Inventory,
    about_to_lease: Callable[[Lease], object],
    note: Callable[[str], None],
) -> Taken | None:
    """Lease the chosen GPUs; return `None` if another start was faster."""
    lease = Lease(wish.name, chosen.uuids, secrets.token_hex(4), found.boot)
    about_to_lease(lease)
    again = snapshot(wish.engines)
    steps = {"lease": leases.make(lease, found.dead_leases), "gpus": again}
    done = wish.host.run(steps, timeout=ASK_SECONDS)
    if done["lease"].status != 0:
        note(
            f"cannot lease GPUs in `{leases.PARENT}` on `{wish.host.name}`: other users may "
            "take the same ones"
        )
        return Taken(chosen, found)
    others = read(done["gpus"].stdout, wish.host.name, wish.within).without(lease.names)
    if any(device.in_use for device in others.devices if device.uuid in chosen.uuids):
        release(wish.host, lease)
        return None
    return Taken(chosen, found, lease)


_WORD = re.compile(r"jlr-gpu-(uuid|place)-(\d+)-")


def promised(count: int) -> Chosen:
    """Return a number of GPUs by words that stand for their names."""
    uuid, place = (
        tuple(f"jlr-gpu-{kind}-{number}-" for number in range(count)) for kind in ("uuid", "place")
    )
    return Chosen(uuid, place)


def with_gpus(text: str, chosen: Chosen) -> str:
    """Return a text with the names of the chosen GPUs in place of these words.

    No name has a character that a shell would not take as it is.
    """
    names = {"uuid": chosen.uuids, "place": chosen.places}
    return _WORD.sub(lambda found: names[found[1]][int(found[2])], text)
