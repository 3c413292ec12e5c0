"""The laptop's records of its sessions: what only the laptop knows, above all the local port.

Everything else is asked where the truth is, on the host. No secret is ever in here.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from jlremote.errors import NotFound, Usage
from jlremote.storage import paths, records


@dataclass(frozen=True)
class PortRecord:
    """A further port of a session.

    Attributes:
        port: TCP port in its container.
        local_port: TCP port on 127.0.0.1.
    """

    port: int
    local_port: int


@dataclass(frozen=True)
class SessionRecord:
    """What the laptop remembers of a session.

    Attributes:
        host: what was typed after `ssh`.
        name: the session's name, the container's where there is one.
        typed: what a person calls it, where a house's rule made another name of that.
        runtime: name of the runtime.
        local_port: TCP port on 127.0.0.1, kept from one start to the next.
        ssh_config: ssh's `-F` that the session was started with.
        image: the container's image.
        gpus: the GPUs that the container was created with.
        ports: its further ports, by number.
        open_allowed: whether a server may be forwarded that lets everybody in.
        forwarded: whether the ports are to be held; false after `jlr stop`.
        last_used: seconds since the epoch.
    """

    host: str
    name: str
    runtime: str
    local_port: int
    typed: str | None = None
    ssh_config: str | None = None
    image: str | None = None
    gpus: str | None = None
    ports: tuple[PortRecord, ...] = ()
    open_allowed: bool = False
    forwarded: bool = True
    last_used: float = field(default_factory=time.time)

    @property
    def container(self) -> str | None:
        """The container's name, `None` without an engine."""
        return None if self.runtime == "none" else self.name

    @property
    def local_ports(self) -> frozenset[int]:
        """All ports of this machine that are the session's."""
        return frozenset((self.local_port, *(port.local_port for port in self.ports)))

    def used_now(self) -> SessionRecord:
        """Return the record as of now."""
        return replace(self, last_used=time.time())


def save(record: SessionRecord) -> None:
    """Write a record, whole.

    Raises:
        JlrError: it cannot be written.
    """
    records.save(_file(record.host, record.name), record)


def check_writable() -> None:
    """Find out that records can be written before anything is made that needs one.

    Raises:
        JlrError: they cannot.
    """
    trial = _folder() / "trial"
    paths.write_whole(trial, "")
    trial.unlink(missing_ok=True)  # another command may try at the same time


def delete(record: SessionRecord) -> None:
    """Forget a session; twice is fine."""
    _file(record.host, record.name).unlink(missing_ok=True)


def find(host: str, name: str) -> SessionRecord | None:
    """Return the record of one session, `None` for none that can be read."""
    return _load(_file(host, name))


def load_all() -> list[SessionRecord]:
    """Return all records, the latest first; what is no record of ours is passed over."""
    found = records.load_all(_folder(), SessionRecord, **_PARTS)
    return sorted(found, key=lambda record: -record.last_used)


def unreadable() -> list[Path]:
    """Return the files among the records that are none: cut short, or somebody else's."""
    return [path for path in _folder().glob("*.json") if _load(path) is None]


def choose(selector: str | None) -> SessionRecord:
    """Return the session called `NAME` or `HOST/NAME`; by default the latest.

    Raises:
        NotFound: there is no such session.
        Usage: the name stands for sessions on several hosts.
    """
    found = load_all()
    if selector is None:
        found = [record for record in found if record.forwarded] or found
        if not found:
            raise NotFound("there are no sessions", hint="start one: `jlr start HOST CONTAINER`")
        return found[0]
    matches = [r for r in found if selector in (r.name, f"{r.host}/{r.name}")]
    if not matches:
        matches = [r for r in found if r.typed and selector in (r.typed, f"{r.host}/{r.typed}")]
    if not matches:
        raise NotFound(f"there is no session `{selector}`", hint="`jlr list` shows what there is")
    if len(matches) > 1 and len({record.host for record in matches}) > 1:
        places = ", ".join(f"`{record.host}/{record.name}`" for record in matches)
        raise Usage(f"`{selector}` is the name of several sessions", hint=f"say which: {places}")
    return matches[0]


def _folder() -> Path:
    return records.folder("sessions")


def _file(host: str, name: str) -> Path:
    return _folder() / records.file_name(host, name)


def _load(file: Path) -> SessionRecord | None:
    return records.load(file, SessionRecord, **_PARTS)


def _port(value: Any) -> int | None:
    return value if type(value) is int and 0 < value < 65536 else None


def _ports(entries: Any) -> tuple[PortRecord, ...] | None:
    if not isinstance(entries, list):
        return None
    for entry in entries:
        if not isinstance(entry, dict) or entry.keys() != {"port", "local_port"}:
            return None
        if not all(map(_port, entry.values())):
            return None
    return tuple(PortRecord(**entry) for entry in entries)


_PARTS: Mapping[str, Callable[[Any], object]] = {"local_port": _port, "ports": _ports}
