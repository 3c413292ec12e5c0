"""The taking of GPUs that a session or job wants: choice and lease."""

from __future__ import annotations

import random
import re
import secrets
import time
from collections.abc import Callable
from dataclasses import dataclass

from jlremote.errors import Busy
from jlremote.gpus import leases
from jlremote.gpus.assigned import RunningContainer
from jlremote.gpus.choice import Chosen, GpuRequest, choose, refuse_to_overtake
from jlremote.gpus.inventory import Inventory
from jlremote.gpus.leases import Lease
from jlremote.gpus.snapshot import Engines, read, snapshot_script
from jlremote.place.host.contract import Host, attempt, run_script
from jlremote.place.host.shell_text import command_line

# A driver that sleeps between questions takes seconds for each GPU.
ASK_SECONDS = 90.0
# Another start takes a second or two; then its container runs, or it has failed.
TRIES = 8
RACE_SECONDS = (0.1, 0.7)


@dataclass(frozen=True)
class Wish:
    """The GPUs that a session or job wants, and where."""

    host: Host
    name: str  # the session's or job's
    asked: GpuRequest
    engines: Engines  # the engines to ask for containers
    share: bool = False  # whether those that others use may be taken
    within: RunningContainer | None = None  # the container whose own ones they are to be

    @property
    def count(self) -> int:
        return self.asked.count or len(self.asked.names)


@dataclass(frozen=True)
class Taken:
    """The GPUs that were taken."""

    chosen: Chosen
    inventory: Inventory
    lease: Lease | None = None  # `None` for shared ones, and where no lease can be made


def ask(
    host: Host,
    engines: Engines,
    note: Callable[[str], object] | None = None,
    within: RunningContainer | None = None,
) -> Inventory:
    """Return the GPUs of a host, or of a container, with their users, in one round trip.

    With `note` leases of this user's containers that are missing are made again, and told.
    """
    printed = run_script(host, snapshot_script(engines), timeout=ASK_SECONDS).stdout
    inventory = read(printed, host.name, within)
    for identity, lease in inventory.unleased.items() if note else ():
        pid = ("inspect", "--format={{.State.Pid}}", identity)
        asked = " || ".join(command_line((*engine, *pid)) for engine in engines)
        script = f"status=0\n{leases.keep_for(lease, ('sh', '-c', asked))}echo made\n"
        if note and run_script(host, script).stdout.strip():
            note(
                f"the GPUs of `{lease.session}` on `{host.name}` had lost their reservation "
                "and have it again; others may use them by now"
            )
    return inventory


def take(
    wish: Wish,
    word: str | None,
    about_to_lease: Callable[[Lease], object],
    note: Callable[[str], None],
    inventory: Inventory | None = None,
) -> Taken:
    """Choose and lease GPUs, again if another start leased the same at the same moment.

    `word` names the place in the queue, `None` for none; `inventory` is a snapshot of a moment ago.
    `about_to_lease` is called with each lease before it is made. Raise `Busy` if the GPUs are in
    use, or others wait for them, `NotFound` if the host has no such GPU, and `CannotAsk` if it
    cannot say which are free.
    """
    for left in reversed(range(TRIES)):
        inventory = inventory or ask(wish.host, wish.engines, within=wish.within)
        try:
            chosen = choose(wish.asked, inventory, wish.host.name, share=wish.share)
            if not wish.share:
                refuse_to_overtake(wish.host.name, len(chosen.uuids), inventory, word)
        except Busy:
            claims = (claim for device in inventory.devices for claim in device.claims)
            if not left or not any(claim.kind == "start" for claim in claims):
                raise
        else:
            if wish.share:
                return Taken(chosen, inventory)
            taken = _leased(wish, chosen, inventory, about_to_lease, note)
            if taken is not None:
                return taken
        inventory = None
        time.sleep(random.uniform(*RACE_SECONDS))  # noqa: S311  # so that two do not meet again
    raise Busy(f"lost the race for GPUs on `{wish.host.name}`", hint="run the command again")


def _leased(
    wish: Wish,
    chosen: Chosen,
    inventory: Inventory,
    about_to_lease: Callable[[Lease], object],
    note: Callable[[str], None],
) -> Taken | None:
    lease = Lease(wish.name, chosen.uuids, secrets.token_hex(4), inventory.boot)
    about_to_lease(lease)
    again = snapshot_script(wish.engines)
    steps = {"lease": leases.make(lease, inventory.dead_leases), "gpus": again}
    done = wish.host.run(steps, timeout=ASK_SECONDS)
    if done["lease"].status != 0:
        where = f"`{leases.PARENT}` on `{wish.host.name}`"
        note(f"cannot reserve GPUs in {where}: other users may take the same ones")
        return Taken(chosen, inventory)
    others = read(done["gpus"].stdout, wish.host.name, wish.within).without(lease.names)
    if any(device.in_use for device in others.devices if device.uuid in chosen.uuids):
        attempt(wish.host, leases.release(lease))
        return None
    return Taken(chosen, inventory, lease)


_WORD = re.compile(r"jlr-gpu-(uuid|place)-(\d+)-")


def promised(count: int) -> Chosen:
    """Return placeholder words for a number of GPUs that are not chosen yet."""
    kinds = ("uuid", "place")
    return Chosen(*(tuple(f"jlr-gpu-{kind}-{n}-" for n in range(count)) for kind in kinds))


def with_gpus(text: str, chosen: Chosen) -> str:
    """Return a text with the names of the chosen GPUs in place of the placeholders."""
    names = {"uuid": chosen.uuids, "place": chosen.places}
    return _WORD.sub(lambda word: names[word[1]][int(word[2])], text)
