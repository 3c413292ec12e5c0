"""`jlr proxy`: connect an ssh client that asks for `cont1.jlr` to the link's SSH server."""

from __future__ import annotations

import os
from collections.abc import Iterable
from functools import partial
from pathlib import Path

from jlremote.hosts.attached_process import carry
from jlremote.hosts.context import Context
from jlremote.laptop import sessions
from jlremote.laptop.known_names import SUFFIX
from jlremote.laptop.record_files import matching
from jlremote.laptop.sessions import SessionRecord
from jlremote.laptop.typed_place import known_hosts
from jlremote.selection.session_selection import place_of


def proxy(name: str, context: Context, *, stdin: int, stdout: int) -> None:
    """Connect an ssh client, at two descriptors, with the server for a name below `.jlr`.

    Raise `NotFound` if there is no such session, container or host, or the container does not run.
    """
    host, place = place_of(selector_of(name, context.ssh_config), context)
    with host.serve_ssh(place) as link:
        carry(link, partial(os.read, stdin), partial(os.write, stdout))


def selector_of(name: str, ssh_config: Path | None) -> str:
    """Return what `cont1.jlr`, `cont1.dgx.jlr` or `dgx.jlr` is to jlr: a session or a host.

    Both parts may have dots of their own, so known sessions and hosts tell where the first ends.
    Raise `Usage` if several hosts have a session of that name.
    """
    words = name.removesuffix(SUFFIX)
    known = sessions.load_all()
    if matching(known, words):
        return words
    parts = words.split(".")
    splits = [(".".join(parts[:at]), ".".join(parts[at:])) for at in range(1, len(parts))]
    for first, host in splits:
        for record in known:
            hosts = (record.host, record.host.rpartition("@")[2])
            if first in (record.name, record.typed) and host in hosts:
                return f"{record.host}/{record.name}"
    there = known_hosts(ssh_config)
    if words in there:
        return words
    return next((f"{host}/{first}" for first, host in splits if host in there), words)


def name_of(record: SessionRecord, known: Iterable[SessionRecord]) -> str:
    """Return a session's name below `.jlr`, with its host where others are called the same."""
    others = any(other.name == record.name and other.host != record.host for other in known)
    host = record.host.rpartition("@")[2]
    return f"{record.name}.{host}{SUFFIX}" if others else f"{record.name}{SUFFIX}"
