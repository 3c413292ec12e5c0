"""The queue for a host's GPUs: the starts of all users that wait for free ones, in their order.

A place in the queue is two links beside the leases. The time of the first is that of the arrival;
the second is made anew while its start waits, so that a place that was left behind ends by itself.
If a process of the host waits, the second names it, which is its user's, and the place ends with
it.
Both are named after the first GPU that is waited for, and after the container if these are its own,
so that GPUs which others cannot get have a queue of their own (`Inventory.line`).
"""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from jlremote.gpus.leases import ENTER, HIDDEN, is_of
from jlremote.untrusted import count, moment, whole_number

# After so long without a sign of its start a place counts no more: time for a lost connection.
PLACE_SECONDS = 180.0

_ARRIVAL, _SIGN = "queue-", "waits-"


@dataclass(frozen=True)
class WaitingStart:
    """A start that waits for GPUs."""

    session: str
    user: str  # the owner of its links, a user of the host
    count: int  # of GPUs
    since: float  # its arrival, in seconds since the epoch by the host's clock
    word: str  # a random word, unique to this start


@dataclass(frozen=True)
class QueueTicket:
    """The place of one start in the queue, as it is made."""

    gpu: str  # the UUID of the first GPU that is waited for; see `Inventory.line`
    session: str
    count: int
    word: str
    boot: str  # the host's boot id
    pid: int = 0  # of the process of the host that waits, 0 for a start that the laptop waits for
    process_start: str = "0"

    @property
    def _names(self) -> tuple[str, str]:
        gpu = self.gpu.replace("/", "_")
        return f"{_ARRIVAL}{gpu}+{self.word}", f"{_SIGN}{gpu}+{self.word}"

    def stand(self) -> str:
        """Return the script that takes the place, or shows that its start still waits."""
        arrival, sign = map(shlex.quote, self._names)
        begin = f"jlr:{self.session}:{self.boot}"
        target = shlex.quote(f"{begin}:{self.count}:0")
        waits = shlex.quote(f"{begin}:{self.pid}:{self.process_start}")
        new = shlex.quote(f"new-{self._names[1]}")
        return (
            f"{ENTER}ln -s {waits} {new} && {{ mv -fT {new} {sign} || mv -f {new} {sign}; }}\n"
            f"[ -L {arrival} ] || ln -s {target} {arrival}\n"
        )

    def leave(self) -> str:
        """Return the script that gives the place up."""
        return f"{ENTER}rm -f -- {shlex.join(self._names)}\n"


def is_place(fields: Sequence[str]) -> bool:
    """Return whether the fields of a link, as `leases.LIST` printed them, are those of a place."""
    return len(fields) == 5 and fields[0].startswith((_ARRIVAL, _SIGN))


def read(
    found: Iterable[Sequence[str]], line: str, now: float, boot: str
) -> tuple[tuple[WaitingStart, ...], dict[str, str]]:
    """Return who waits, the first first, and the links that no longer count with their owners.

    `found` are the fields that `leases.LIST` printed, `line` is the name of the queue.
    """
    links, line = {}, line.replace("/", "_")
    for fields in found:
        if is_place(fields):
            owner, _, changed = fields[1].rpartition(" ")
            since = moment(changed)
            if owner and since is not None:
                alive = is_of(fields[3], fields[2].rpartition(":")[2]) and fields[4] == owner
                alive = alive or fields[3].startswith(HIDDEN)  # its sign is all that is known
                links[fields[0]] = (owner, since, fields[2].split(":"), alive)
    waiting, dead = [], {}
    for name, (owner, since, target, _) in links.items():
        kind, word = name[: len(_ARRIVAL)], name.rpartition("+")[2]
        sign = links.get(_SIGN + name[len(_ARRIVAL) :])
        fresh = sign is not None and sign[0] == owner and abs(now - sign[1]) <= PLACE_SECONDS
        gone = sign is not None and sign[2][4:] != ["0"] and not sign[3]
        if gone or not fresh or len(target) != 5 or target[2] != boot or count(target[3]) is None:
            dead[name] = owner
        elif kind == _ARRIVAL and name[len(_ARRIVAL) :].rpartition("+")[0] == line:
            waiting.append(WaitingStart(target[1], owner, whole_number(target[3]), since, word))
    return tuple(sorted(waiting, key=lambda one: (one.since, one.word))), dead


def ahead(queue: Sequence[WaitingStart], word: str | None) -> tuple[WaitingStart, ...]:
    """Return those who come before a start: all of them, if it has no place in the queue."""
    own = next((number for number, one in enumerate(queue) if one.word == word), len(queue))
    return tuple(queue[:own])
