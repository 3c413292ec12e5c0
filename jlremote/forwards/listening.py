"""The TCP ports on which programs of a session listen, by a script that looks where it runs.

Only sockets that its processes hold count, not those of Jupyter and jlr. Those of a kernel, known
by the connection file in its arguments, have numbers that the system chose; a cell's page has not.
"""

from __future__ import annotations

import re
import time
from contextlib import suppress
from dataclasses import replace

from jlremote.errors import JlrError
from jlremote.forwards.address import PortReport
from jlremote.hosts import halted
from jlremote.jupyter import activity
from jlremote.jupyter.presence import PROGRAMS
from jlremote.laptop.sessions import SessionRecord
from jlremote.link.client.link import Link
from jlremote.place.host.addresses import LISTENING, LOCALHOST_6, read_listeners
from jlremote.place.host.contract import PRINT_FIELD, PRINT_GROUP, PRINT_RECORD, records, run_script
from jlremote.place.host.shell_text import command_line, pause, until_hang_up
from jlremote.place.runtimes.table import runtime_of
from jlremote.text import one_line
from jlremote.times import utc
from jlremote.untrusted import number

# The most lines of each: a container may listen on all ports, in as many processes.
_ROWS, _HELD = 4000, 1000
_SCRIPT = rf"""
rows() {{ {LISTENING} | head -n {_ROWS}; }}
look() {{
  inodes=$(printf '%s\n' "${{rows:-none}}" | sed 's/^ *\([^ ]*  *\)\{{9\}}\([0-9]*\) .*/[\2]/')
  held=$(ls -l /proc/self/fd /proc/[0-9]*/fd 2>/dev/null | sed -n '
    /^\/proc\/.*:$/{{s,/fd:$,;,;h}}; /socket:/{{s/.*socket:\(\[[0-9]*\]\)$/\1/;G;s/\n/ /p}}' |
    grep -F -e "$inodes" | head -n {_HELD})
PROCESSES
  read -r up _ </proc/uptime; chosen=$(cat /proc/sys/net/ipv4/ip_local_port_range)
  printf 'sockets{PRINT_FIELD}%s{PRINT_FIELD}%s' "$rows" "$held"
  printf '{PRINT_FIELD}%s{PRINT_FIELD}%s{PRINT_RECORD}{PRINT_GROUP}' "$up" "$chosen"
}}
rows=$(rows) told=none
"""
# At each change, and after a minute.
_AGAIN = f"""\
while :; do
  [ "$rows" = "$told" ] && [ "$turns" -lt 60 ] || {{ look; told=$rows turns=0; }}
  {pause(1)}; turns=$((turns + 1)); rows=$(rows)
done"""
Ports = dict[int, PortReport]  # by their numbers there
_INTERPRETERS = ("python", "pypy", "ruby", "node", "perl", "java", "julia", "Rscript")


def script(link: Link, record: SessionRecord, *, follow: bool = False) -> str:
    """Return the script that prints what listens, with `follow` at each change too (see `read`)."""
    runtime, name = runtime_of(record), record.name
    container = halted.running(record, runtime, halted.container_of(link, runtime, record))
    holds = f'case $held in *" $process;"*) ;; *) false;; esac && {runtime.owns(container)}'
    text = _SCRIPT.replace("PROCESSES", activity.PROCESSES.replace("OWNS", holds))
    if not follow:
        return runtime.inside(name, runtime.on_machine(name, f"{text}look\n"))
    return command_line((*runtime.relay_prefix(name), "sh", "-c", text + until_hang_up(_AGAIN)))


def with_listening(
    ports: tuple[PortReport, ...], link: Link, record: SessionRecord
) -> tuple[PortReport, ...]:
    """Add to reports what listens there and since when, and the ports that are not forwarded."""
    now: Ports = {}
    with suppress(JlrError):
        now = read(run_script(link, script(link, record)).stdout, link, record, {}) or {}
    for known in ports:
        its = known if known.on_host else now.get(known.port, known)
        now[known.port] = replace(known, program=its.program, since=its.since)
    return tuple(now[port] for port in sorted(now))


def read(printed: str, link: Link, record: SessionRecord, known: Ports) -> Ports | None:
    """Return what listens, from a group of the script; `None` if that is cut.

    Of more than the script prints at most, what is `known` still counts.
    """
    try:
        _, rows, held, up, chosen = records(printed)[-1]
        boot, lowest = time.time() - number(up), number(chosen.split()[0])
    except (ValueError, IndexError):
        return None
    server, found = link.status().forward(record.name), Ports()
    pairs = set(re.findall(r"\[(\d+)\] /proc/(\d+);", held))
    processes = sorted(activity.read(printed).processes, key=lambda one: one.began)
    for at in sorted(read_listeners(rows), key=lambda one: one.everywhere):
        its = [each for each in processes if (at.inode, str(each.pid)) in pairs]
        ours = any(_is_ours(one, chosen=at.port >= lowest) for one in its)
        if its and not ours and (server is None or at.port != server.endpoint.port):
            near = at.everywhere or at.address.startswith("127.") or at.address == LOCALHOST_6
            why = None if near else f"it listens on {at.address} only"
            facts = ("running", utc(boot + its[0].began / 100), why)  # USER_HZ (time(7))
            found.setdefault(
                at.port, PortReport(at.port, None, *facts, program=_program_or_script(its[0]))
            )
    whole = rows.count("\n") < _ROWS - 1 and held.count("\n") < _HELD - 1
    return found if whole else known | found


def _is_ours(process: activity.Process, *, chosen: bool) -> bool:
    jupyter = PROGRAMS.intersection(word.rpartition("/")[2] for word in process.words[:4])
    texts = (text in word for text in activity.OURS for word in process.words)
    return (
        bool(jupyter)
        or any(texts)
        or (chosen and any("/kernel-" in word for word in process.words))
    )


def _program_or_script(process: activity.Process) -> str:
    first, *rest = (word.rpartition("/")[2] for word in process.words[:5])
    if first.startswith(_INTERPRETERS) and "-c" not in rest:
        first = next((word for word in rest if not word.startswith("-")), first)
    return one_line(first)[:40] or "?"
