"""Leases on the host: two people who start at the same moment never get the same GPU.

A lease is a symbolic link in a folder that users_of_all may write to, as editors' lock files are:
made in one step, and neither writing nor reading it ever follows it anywhere, so a planted one can
do no harm. Its name is the device's UUID and a random word, its target says for what, and its
owner, whom nobody can forge, for whom.

Everybody makes their own, then looks at all others, and lets go of their own if another one holds
the same device. Of two, the later one sees the earlier one's, so never do both keep theirs. What
a crash has left, or somebody else must not delete, simply holds nothing any more: a lease counts
for some minutes, or while the process that it names lives.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

_PARENT = "/tmp"  # noqa: S108  # shared by all users on purpose; see above
FOLDER = f"{_PARENT}/jlr-gpus"
# Longer than any start may take from its choice to the container's running.
LEASE_SECONDS = 300.0
_AHEAD_SECONDS = 60.0
NO_FOLDER = 73  # sysexits.h: EX_CANTCREAT

# Prints every lease with its owner, its age, and what is known of the process that it names.
LIST = f"""\
for link in {FOLDER}/*+*; do
    [ -L "$link" ] || continue
    target=$(readlink "$link")
    case $link$target in *[!A-Za-z0-9.:_/+-]*) continue;; esac
    pid=${{target%:*}}; pid=${{pid##*:}}
    case $pid in ''|0|*[!0-9]*) pid=none;; esac
    say lease "${{link##*/}}" "$(stat -c '%U %Y' "$link")" "$target" \\
      "$(clean <"/proc/$pid/stat")"
  done"""

_ENTER = f"""\
[ -d {FOLDER} ] || mkdir -m 1777 {FOLDER} 2>/dev/null
cd -P {FOLDER} 2>/dev/null && [ "$(pwd -P)" = "$(cd -P {_PARENT} && pwd)/jlr-gpus" ] && [ -k . ] &&
  [ -w . ] || exit {NO_FOLDER}
"""


@dataclass(frozen=True)
class Lease:
    """Leases on some devices, all of one start.

    Attributes:
        session: for which session.
        uuids: of which devices.
        word: what no other start's leases are called.
        boot: during which boot of the host.
    """

    session: str
    uuids: tuple[str, ...]
    word: str
    boot: str

    @property
    def names(self) -> tuple[str, ...]:
        """What the links are called."""
        return tuple(f"{uuid.replace('/', '_')}+{self.word}" for uuid in self.uuids)

    def target(self, pid: int = 0, process_start: str = "0") -> str:
        """Return what the links say."""
        return f"jlr:{self.session}:{self.boot}:{pid}:{process_start}"


@dataclass(frozen=True)
class ListedLease:
    """A lease as the host lists it.

    Attributes:
        name: what the link is called.
        uuid: of which device.
        session: for which session.
        owner: for whom.
        since: seconds since the epoch.
        settled: whether it lasts as long as a process, the start being over.
        holds: whether it still does.
    """

    name: str
    uuid: str
    session: str
    owner: str
    since: float
    settled: bool
    holds: bool


def make(lease: Lease, dead: Iterable[str]) -> str:
    """Return the script that makes a lease, and deletes one's own that hold nothing any more."""
    links = "".join(
        f"ln -s {shlex.quote(lease.target())} {shlex.quote(name)} || exit\n" for name in lease.names
    )
    return f"{_ENTER}{_delete(dead)}{links}"


def keep(lease: Lease, pid: int, process_start: str) -> str:
    """Return the script that lets a lease last as long as a process, told by pid and start."""
    return f"{_ENTER}target={shlex.quote(lease.target(pid, process_start))}\n{_renew(lease)}"


def keep_for(lease: Lease, pid_argv: Iterable[str]) -> str:
    """Return the step that lets a lease last as long as a container, if the step before made one.

    If not, the start still has it, for it may try again. The container's label says the same, but
    only to those who may ask its engine. Where its process cannot be seen the label has to do.

    Args:
        lease: on its devices.
        pid_argv: the command that prints the pid of its first process.
    """
    return f"""\
{_ENTER}[ "$status" = 0 ] || exit
pid=$({shlex.join(pid_argv)}) && process=$(cat "/proc/$pid/stat") || {{
{_delete(lease.names)}exit; }}
set -- ${{process##*) }}; shift 19
target={shlex.quote(lease.target().removesuffix("0:0"))}$pid:$1
{_renew(lease)}"""


def _renew(lease: Lease) -> str:
    """Put links to `$target` in the place of a lease's, each in one step.

    Without `-T` a folder of the old target's name would be moved into.
    """
    return "".join(
        f'ln -s "$target" {new} && {{ mv -fT {new} {old} || mv -f {new} {old}; }}\n'
        for new, old in ((shlex.quote(f"new-{name}"), shlex.quote(name)) for name in lease.names)
    )


def release(lease: Lease) -> str:
    """Return the script that gives the devices back."""
    return f"{_ENTER}{_delete(lease.names)}"


def _delete(names: Iterable[str]) -> str:
    words = shlex.join(names)
    return f"rm -f -- {words}\n" if words else ""


def read(fields: Sequence[str], now: float, boot: str) -> ListedLease | None:
    """Return a lease out of the fields that `LIST` printed; `None` for what is none."""
    if len(fields) != 4:
        return None
    name, owner_and_time, target, process = fields
    owner, _, changed = owner_and_time.rpartition(" ")
    parts = target.split(":")
    uuid, plus, _ = name.rpartition("+")
    if not (owner and plus and changed.isdigit() and len(parts) == 5 and parts[0] == "jlr"):
        return None
    _, session, of_boot, _, start = parts
    since = float(changed)
    alive = process.rpartition(")")[2].split()[19:20] == [start]
    fresh = -_AHEAD_SECONDS <= now - since <= LEASE_SECONDS
    settled = start != "0"
    holds = of_boot == boot and (alive if settled else fresh)
    return ListedLease(name, uuid.replace("_", "/"), session, owner, since, settled, holds)
