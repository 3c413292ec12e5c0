"""The TCP ports on which programs of a session listen, by a script that looks where it runs.

Only sockets that a process of the session holds count, and not those of Jupyter and jlr. A kernel
has five or six whose numbers the system chose; in the process of one, which the connection file in
its arguments shows, only other numbers count, as that of a page which a cell serves.
"""

from __future__ import annotations

import re
import time
from collections import defaultdict
from contextlib import suppress
from dataclasses import replace

from jlremote.errors import JlrError
from jlremote.forwards.address import PortReport
from jlremote.hosts import halted
from jlremote.jupyter import activity
from jlremote.jupyter.activity import Process
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

# Lines of each: a container may listen on all ports, in as many processes.
_SOCKETS, _HOLDERS = 2000, 400
_SCRIPT = rf"""
rows() {{ {LISTENING} | head -n {_SOCKETS}; }}
look() {{
  inodes=$(printf '%s\n' "${{rows:-none}}" | sed 's/^ *\([^ ]*  *\)\{{9\}}\([0-9]*\) .*/[\2]/')
  held=$(ls -l /proc/self/fd /proc/[0-9]*/fd 2>/dev/null |
    sed -n 's,^\(/proc/[0-9]*\)/fd:$,\1,p; s/.*socket:\(\[[0-9]*\]\)$/\1/p' |
    grep -F -e /proc/ -e "$inodes" | grep -B1 -F '[' | head -n {_HOLDERS})
PROCESSES
  read -r up _ </proc/uptime; chosen=$(cat /proc/sys/net/ipv4/ip_local_port_range)
  printf 'sockets{PRINT_FIELD}%s{PRINT_FIELD}%s' "$rows" "$held"
  printf '{PRINT_FIELD}%s{PRINT_FIELD}%s{PRINT_RECORD}{PRINT_GROUP}' "$up" "$chosen"
}}
rows=$(rows)
"""
_HOLDS = '{ case $held in *"$process\n["*) ;; *) false;; esac; }'
# At each change, and after a minute.
_AGAIN = f"""\
while look; do
  told=$rows turns=0
  while [ "$rows" = "$told" ] && [ "$turns" -lt 60 ]; do
    {pause(1)}; turns=$((turns + 1)); rows=$(rows)
  done
done"""
_TICKS = 100.0  # a second: USER_HZ (time(7))
_KERNEL = re.compile(r".*/kernel-[^/]*\.json")
_INTERPRETER = re.compile(r"(python|pypy|ruby|node|perl|java|julia|R)[\d.]*")
_LONGEST = 40


def script(link: Link, record: SessionRecord, *, follow: bool = False) -> str:
    """Return the script that prints a group of what listens, with `follow` one at each change too.

    Raises:
        JlrError: the session's container is not there or does not run.
    """
    runtime, name = runtime_of(record), record.name
    container = halted.running(record, runtime, halted.container_of(link, runtime, record))
    processes = activity.PROCESSES.replace("OWNS", f"{_HOLDS} && {runtime.owns(container)}")
    text = _SCRIPT.replace("PROCESSES", processes)
    if not follow:
        return runtime.inside(name, runtime.on_machine(name, f"{text}look\n"))
    return command_line((*runtime.relay_prefix(name), "sh", "-c", text + until_hang_up(_AGAIN)))


def with_listening(
    ports: tuple[PortReport, ...], link: Link, record: SessionRecord
) -> tuple[PortReport, ...]:
    """Add to reports what listens there and since when, and the ports that are not forwarded."""
    now: dict[int, PortReport] = {}
    with suppress(JlrError):
        now = read(run_script(link, script(link, record)).stdout, link, record) or {}
    for known in ports:
        its = known if known.on_host else now.get(known.port, known)
        now[known.port] = replace(known, program=its.program, since=its.since)
    return tuple(now[port] for port in sorted(now))


def read(printed: str, link: Link, record: SessionRecord) -> dict[int, PortReport] | None:
    """Return what listens by its port, from a group of the script; `None` if that is cut."""
    try:
        _, rows, held, up, chosen = records(printed)[-1]
        boot, lowest = time.time() - number(up), number(chosen.split()[0])
    except (ValueError, IndexError):
        return None
    server, found = link.status().forward(record.name), dict[int, PortReport]()
    holders, process = defaultdict[str, list[Process]](list), None
    processes = {f"/proc/{each.pid}": each for each in activity.read(printed).processes}
    for word in held.split():
        process = processes.get(word) if word.startswith("/") else process
        holders[word] += [process] if process else []
    for at in sorted(read_listeners(rows), key=lambda one: one.everywhere):
        its = sorted(holders[f"[{at.inode}]"], key=lambda one: one.began)
        ours = any(_is_ours(one, chosen=at.port >= lowest) for one in its)
        if its and not ours and (server is None or at.port != server.endpoint.port):
            near = at.everywhere or at.address.startswith("127.") or at.address == LOCALHOST_6
            why = None if near else f"it listens on {at.address} only"
            facts = ("running", utc(boot + its[0].began / _TICKS), why)
            found.setdefault(at.port, PortReport(at.port, None, *facts, program=_program(its[0])))
    return found


def _is_ours(process: Process, *, chosen: bool) -> bool:
    begins = (word.rpartition("/")[2] for word in process.words[:4])
    texts = any(text in word for text in activity.OURS for word in process.words)
    is_kernel = chosen and any(map(_KERNEL.fullmatch, process.words))
    return texts or is_kernel or not PROGRAMS.isdisjoint(begins)


def _program(process: Process) -> str:
    """Return the name of a program, or of the script or module that an interpreter runs."""
    first, *rest = (word.rpartition("/")[2] for word in process.words[:5])
    if _INTERPRETER.fullmatch(first) and "-c" not in rest:
        first = next((word for word in rest if not word.startswith("-")), first)
    return one_line(first)[:_LONGEST] or "?"
