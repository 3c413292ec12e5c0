"""The names below `.jlr` by which ssh clients know sessions and hosts."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from jlremote.laptop import sessions
from jlremote.laptop.known_names import SUFFIX, host_names
from jlremote.laptop.sessions import SessionRecord


def selector_of(name: str, ssh_config: str | None) -> str:
    """Return what `cont1.jlr`, `cont1.dgx.jlr` or `dgx.jlr` is to jlr: a session or a host.

    Both parts may have dots of their own, so known sessions and hosts tell where the first ends.

    Raises:
        Usage: several hosts have a session of that name.
    """
    words = name.removesuffix(SUFFIX)
    known = sessions.load_all()
    if any(words in (record.name, record.typed) for record in known):
        return words
    splits = list(_splits(words))
    for first, host in splits:
        if record := _session(first, host, known):
            return f"{record.host}/{record.name}"
    hosts = {*host_names(ssh_config), *(record.host for record in known)}
    if words not in hosts:
        for first, host in splits:
            if host in hosts:
                return f"{host}/{first}"
    return words


def name_of(record: SessionRecord, known: Iterable[SessionRecord]) -> str:
    """Return a session's name below `.jlr`, with its host where others are called the same."""
    others = any(other.name == record.name and other.host != record.host for other in known)
    host = record.host.rpartition("@")[2]
    return f"{record.name}.{host}{SUFFIX}" if others else f"{record.name}{SUFFIX}"


def _splits(words: str) -> Iterator[tuple[str, str]]:
    """Yield each split of a name at a dot, the longest host first."""
    parts = words.split(".")
    for at in range(1, len(parts)):
        yield ".".join(parts[:at]), ".".join(parts[at:])


def _session(name: str, host: str, known: Iterable[SessionRecord]) -> SessionRecord | None:
    """Return the session of a host, which may have been typed as `USER@HOST`."""
    for record in known:
        if name in (record.name, record.typed) and host in (
            record.host,
            record.host.rpartition("@")[2],
        ):
            return record
    return None
