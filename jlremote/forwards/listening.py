"""The TCP ports on which programs of a session listen, by a script that looks where it runs.

Only those that its own processes hold count; Jupyter's, jlr's and a kernel's own five do not.
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
from jlremote.place.host.shell_text import again_until_hang_up
from jlremote.place.runtimes.table import runtime_of
from jlremote.text import one_line
from jlremote.times import utc
from jlremote.untrusted import number

# The most lines of each: a container may listen on all ports, in as many processes.
_ROWS, _HELD = 4000, 1000
_SCRIPT = rf"""# {activity.OURS[0]}
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
_AGAIN = """\
[ "$rows" = "$told" ] && [ "$turns" -lt 60 ] || { look; told=$rows turns=0; }
turns=$((turns + 1)); rows=$(rows)
[ $((turns % 5)) -ne 0 ] || printf 'GROUP'""".replace("GROUP", PRINT_GROUP)  # is it wanted?
Ports = dict[int, PortReport]  # by their numbers there


def script(link: Link, record: SessionRecord, *, follow: bool = False) -> str:
    """Return the script that prints what listens, with `follow` at each change too (see `read`)."""
    runtime, name = runtime_of(record), record.name
    container = halted.running(record, runtime, halted.container_of(link, runtime, record))
    holds = f'case $held in *" $process;"*) ;; *) false;; esac && {runtime.owns(container)}'
    text = _SCRIPT.replace("PROCESSES", activity.PROCESSES.replace("OWNS", holds))
    if not follow:
        return runtime.inside(name, runtime.on_machine(name, f"{text}look\n"))
    return runtime.beside(name, text + again_until_hang_up(_AGAIN, 1))


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
    """Return what a group of the script tells, and `known` where its limits cut; `None` if torn."""
    try:
        _, rows, held, up, chosen = records(printed)[-1]
        boot, lowest = time.time() - number(up), number(chosen.split()[0])
    except (ValueError, IndexError):
        return None
    jupyter = server.endpoint.port if (server := link.status().forward(record.name)) else None
    own, found = {str(each.pid): each for each in activity.read(printed).processes}, Ports()
    pids = dict(re.findall(r"\[(\d+)\] /proc/(\d+);", held))
    for at in sorted(read_listeners(rows), key=lambda one: one.everywhere):
        process = own.get(pids.get(at.inode, ""))
        if process and at.port != jupyter and not _is_ours(process, chosen=at.port >= lowest):
            near = at.everywhere or at.address.startswith("127.") or at.address == LOCALHOST_6
            why = None if near else f"it listens on {at.address} only"
            since = utc(boot + process.began / 100)  # USER_HZ (time(7))
            report = PortReport(at.port, None, "running", since, why, program=_program(process))
            found.setdefault(at.port, report)
    whole = rows.count("\n") < _ROWS - 1 and held.count("\n") < _HELD - 1
    return found if whole else known | found


def _is_ours(process: activity.Process, *, chosen: bool) -> bool:
    jupyter = PROGRAMS.intersection(word.rpartition("/")[2] for word in process.words[:4])
    ours = any(text in word for text in activity.OURS for word in process.words)
    # Its connection file; a page that a cell serves has a number that the system did not choose.
    kernel = any(re.search(r"/kernel-[^/]*\.json$", word) for word in process.words)
    return bool(jupyter) or ours or (kernel and chosen)


def _program(process: activity.Process) -> str:
    first, *rest = (word.rpartition("/")[2] for word in process.words[:5])
    if first.startswith(("python", "node", "ruby", "perl", "java", "julia")) and "-c" not in rest:
        first = next((word for word in rest if not word.startswith("-")), first)
    return one_line(first)[:40] or "?"
