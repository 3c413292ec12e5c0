"""Leases on the host: two starts at the same moment never get the same GPU.

A lease is a symbolic link that nothing follows: its name is the device's UUID and a random word,
its target names the session, and its owner and the time of its last change, which no user can
forge, count. Each user has a folder for them in `/tmp`, whose sticky bit keeps others out.

Each start makes its own lease, then reads all others, and deletes its own if another one holds the
same device: the later of two always sees the earlier. A lease counts for some minutes, or while the
process that it names lives, so one that a crash left behind stops counting.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from jlremote.place.host.shell_text import own_folder
from jlremote.untrusted import count, moment, whole_number

PARENT = "/tmp"  # noqa: S108  # all users have a folder there on purpose
_FOLDER = "jlr-gpus-"  # the user's id follows
# Longer than a start takes from its choice to a running container.
LEASE_SECONDS = 300.0
_AHEAD_SECONDS = 60.0
NO_FOLDER = 73  # sysexits.h: EX_CANTCREAT

HIDDEN = "hidden"  # where users see only their own processes
# Prints every lease with its owner, its time, and the /proc entry of the process that it names
# with that one's owner.
LIST = f"""\
for link in {PARENT}/{_FOLDER}*/*+*; do
    folder=${{link%/*}}
    [ -L "$link" ] && [ ! -L "$folder" ] || continue
    [ "$(stat -c %u "$link")" = "$(stat -c %u "$folder")" ] || continue
    target=$(readlink "$link")
    case $link$target in *[!A-Za-z0-9.:_/+-]*) continue;; esac
    pid=${{target%:*}}; pid=${{pid##*:}}
    case $pid in ''|0|*[!0-9]*) pid=none;; esac
    say lease "${{link##*/}}" "$(stat -c '%U %Z' "$link")" "$target" \\
      "$([ -r /proc/1/stat ] || echo {HIDDEN}; clean <"/proc/$pid/stat")" \\
      "$(stat -c %U "/proc/$pid")"
  done"""

# Begins a script that changes links: it goes to the user's own folder.
ENTER = f"""\
cd -P {PARENT} && [ -k . ] && [ "$(stat -c %u .)" = 0 ] || exit {NO_FOLDER}
{own_folder(_FOLDER, "755", f"exit {NO_FOLDER}")}"""


@dataclass(frozen=True)
class Lease:
    """The leases of one start."""

    session: str
    uuids: tuple[str, ...]
    word: str  # a random word, unique to this start
    boot: str  # the host's boot id

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(f"{uuid.replace('/', '_')}+{self.word}" for uuid in self.uuids)

    def target(self, pid: int = 0, process_start: str = "0") -> str:
        return f"jlr:{self.session}:{self.boot}:{pid}:{process_start}"


@dataclass(frozen=True)
class Claim:
    """A reservation of a device for a session, container or job."""

    # By jlr: to a container that runs, a session of which only a lease is known, or a start under
    # way. By others: to a container that runs, by its engine, or to a job of Slurm. A container
    # with `all` GPUs reserves none.
    kind: Literal["container", "session", "start", "assigned", "job", "all"]
    name: str  # the container's, session's or job's
    user: str | None  # the user who started it
    since: float | None  # seconds since the epoch by the host's clock
    lease: str | None = None  # the lease's name, if the claim comes from one


def make(lease: Lease, dead: Iterable[str]) -> str:
    """Return the script that makes a lease, and deletes this user's dead ones."""
    links = "".join(
        f"ln -s {shlex.quote(lease.target())} {shlex.quote(name)} || exit\n" for name in lease.names
    )
    return f"{ENTER}{_delete(dead)}{links}"


def keep(lease: Lease, pid: int, process_start: str) -> str:
    """Return the script that lets a lease last as long as the process with this pid and start."""
    return f"{ENTER}target={shlex.quote(lease.target(pid, process_start))}\n{_renew(lease.names)}"


def keep_for(lease: Lease, pid_argv: Iterable[str]) -> str:
    """Return the step that lets a lease last as long as the container of the step before.

    If that step failed, the start keeps the lease. If the container's process, whose pid `pid_argv`
    prints, cannot be seen, the lease is deleted, and the container's label alone reserves the
    devices.
    """
    return f"""\
{ENTER}[ "$status" = 0 ] || exit
pid=$({shlex.join(pid_argv)}) && process=$(cat "/proc/$pid/stat") || {{
{_delete(lease.names)}exit; }}
set -- ${{process##*) }}; shift 19
target={shlex.quote(lease.target()[: -len("0:0")])}$pid:$1
{_renew(lease.names)}"""


def _renew(names: Iterable[str]) -> str:
    """Replace links by links to `$target`, each in one step.

    Without `-T`, `mv` would move into a folder of the old target's name.
    """
    pairs = ((shlex.quote(f"new-{name}"), shlex.quote(name)) for name in names)
    step = 'ln -s "$target" {0} && {{ mv -fT {0} {1} || mv -f {0} {1}; }}\n'
    return "".join(step.format(new, old) for new, old in pairs)


def release(lease: Lease) -> str:
    """Return the script that deletes a lease."""
    return f"{ENTER}{_delete(lease.names)}"


def _delete(names: Iterable[str]) -> str:
    words = shlex.join(names)
    return f"rm -f -- {words}\n" if words else ""


def is_of(stat: str, start: str) -> bool:
    """Return whether `/proc/PID/stat` shows a process with this start time."""
    return stat.rpartition(")")[2].split()[19:20] == [start]


def read(fields: Sequence[str], now: float, boot: str) -> tuple[str, Claim, bool] | None:
    """Return a device's UUID, the claim of a lease to it, and whether that still counts.

    `fields` are what `LIST` printed; `None` if they describe no lease. Its kind is `session` if it
    lasts as long as a process, and `start` while that is under way.
    """
    if len(fields) != 5:
        return None
    name, owner_and_time, target, process, _ = fields
    owner, _, changed = owner_and_time.rpartition(" ")
    parts = target.split(":")
    uuid, plus, _ = name.rpartition("+")
    since = moment(changed)
    if since is None or not (owner and plus and len(parts) == 5 and parts[0] == "jlr"):
        return None
    _, session, of_boot, _, start = parts
    alive = is_of(process, start)
    fresh = -_AHEAD_SECONDS <= now - since <= LEASE_SECONDS
    kind: Literal["session", "start"] = "start" if start == "0" else "session"
    holds = of_boot == boot and (fresh if kind == "start" else alive)
    return uuid.replace("_", "/"), Claim(kind, session, owner, since, name), holds


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
    pid: int  # of the process of the host that waits
    process_start: str

    @property
    def _names(self) -> tuple[str, str]:
        gpu = self.gpu.replace("/", "_")
        return f"{_ARRIVAL}{gpu}+{self.word}", f"{_SIGN}{gpu}+{self.word}"

    def stand(self) -> str:
        """Return the script that takes the place, or renews the sign that its start still waits."""
        arrival, begin = shlex.quote(self._names[0]), f"jlr:{self.session}:{self.boot}"
        target = shlex.quote(f"{begin}:{self.count}:0")
        waits = shlex.quote(f"{begin}:{self.pid}:{self.process_start}")
        renew = f"target={waits}\n{_renew(self._names[1:])}"
        return f"{ENTER}{renew}[ -L {arrival} ] || ln -s {target} {arrival}\n"

    def leave(self) -> str:
        return f"{ENTER}rm -f -- {shlex.join(self._names)}\n"


def is_place(fields: Sequence[str]) -> bool:
    """Return whether the fields of a link, as `leases.LIST` printed them, are those of a place."""
    return len(fields) == 5 and fields[0].startswith((_ARRIVAL, _SIGN))


def read_queue(
    found: Iterable[Sequence[str]], line: str, now: float, boot: str
) -> tuple[tuple[WaitingStart, ...], dict[str, str]]:
    """Return the waiting starts in their order, and the dead links with their owners.

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
        gone = sign is not None and not sign[3]
        if gone or not fresh or len(target) != 5 or target[2] != boot or count(target[3]) is None:
            dead[name] = owner
        elif kind == _ARRIVAL and name[len(_ARRIVAL) :].rpartition("+")[0] == line:
            waiting.append(WaitingStart(target[1], owner, whole_number(target[3]), since, word))
    return tuple(sorted(waiting, key=lambda one: (one.since, one.word))), dead


def ahead(queue: Sequence[WaitingStart], word: str | None) -> tuple[WaitingStart, ...]:
    """Return the starts before the one with this word; all of them if it has no place."""
    own = next((number for number, one in enumerate(queue) if one.word == word), len(queue))
    return tuple(queue[:own])
