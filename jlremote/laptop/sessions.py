"""Records of sessions, of the local ports that they had, and of mounts.

They hold what only the laptop knows, above all the local port, and no secret. Everything else is
asked of the host.
"""

from __future__ import annotations

import hashlib
import os
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

from jlremote.errors import NotFound
from jlremote.laptop import known_names, paths
from jlremote.laptop.record_files import NAMES, Records, tcp_port
from jlremote.laptop.settings.options import NO_CONTAINER


@dataclass(frozen=True)
class PortRecord:
    """A further port of a session: TCP `port` in its container, `local_port` on 127.0.0.1."""

    port: int
    local_port: int
    on_host: bool = False  # whether `port` is the host's, and not the container's
    auto: bool = False  # whether `jlr forward --auto` made it, and ends it again


@dataclass(frozen=True)
class SessionRecord:
    """The laptop's record of a session."""

    host: str  # what was typed after `ssh`
    name: str  # the session's name, which is also the container's
    runtime: str
    local_port: int  # TCP port on 127.0.0.1, kept from one start to the next
    typed: str | None = None  # the short name, where a naming template made another name of it
    ssh_config: str | None = None  # ssh's `-F` that the session was started with
    image: str | None = None
    gpus: str | None = None  # the GPUs that the container was created with
    ports: tuple[PortRecord, ...] = ()  # its further ports, by number
    open_allowed: bool = False  # whether a server without token and password may be forwarded
    shared: bool = False  # whether it was joined although it is another user's
    container_id: str = ""  # the engine's full id of its container, which no rename changes
    server: int = 0  # the TCP port there of the Jupyter server that was chosen, 0 for no choice
    notify: bool = False  # whether the person is told of its long cells and dead kernels
    forwarded: bool = True  # whether its ports are kept; false after `jlr stop`
    last_used: float = field(default_factory=time.time)  # seconds since the epoch

    @property
    def selector(self) -> str:
        """The name `HOST/NAME`, as commands take it."""
        return f"{self.host}/{self.name}"

    @property
    def container(self) -> str | None:
        """The container's name, `None` for a session without one."""
        return None if self.runtime in NO_CONTAINER else self.name

    @property
    def engine_name(self) -> str:
        """The container's id or, where that is unknown, its name."""
        return self.container_id or self.name

    @property
    def local_ports(self) -> frozenset[int]:
        return frozenset((self.local_port, *(port.local_port for port in self.ports)))

    def with_port(self, port: PortRecord) -> SessionRecord:
        """Return the record with one port more, or with another local port for it."""
        others = (known for known in self.ports if known.port != port.port)
        return replace(self, ports=tuple(sorted((*others, port), key=lambda one: one.port)))

    def used_now(self) -> SessionRecord:
        return replace(self, last_used=time.time())


_TRIAL_BYTES = 4096  # more than any record, and the least that most disks give a file


def check_writable() -> None:
    """Check that records can be written, before something is made that needs one."""
    trial = _RECORDS.folder() / "trial"
    # A full disk still takes an empty file, and a file system may store equal bytes as none.
    paths.write_whole(trial, os.urandom(_TRIAL_BYTES))
    trial.unlink(missing_ok=True)  # another command may check at the same time


def latest() -> SessionRecord:
    """Return the session used last, of those whose ports are kept if any are (or `NotFound`)."""
    known = _RECORDS.load_all()
    for record in (*(each for each in known if each.forwarded), *known):
        return record
    raise none_known()


def none_known() -> NotFound:
    """Return the error that this laptop knows no session."""
    return NotFound("there are no sessions", hint="`jlr start --help` says how to start one")


def of_container(host: str, container_id: str) -> SessionRecord | None:
    """Return the session whose container has that full id, `None` for none."""
    known = (record for record in _RECORDS.load_all() if record.host == host)
    return next((each for each in known if each.container_id == container_id != ""), None)


def _ports(entries: Any) -> tuple[PortRecord, ...] | None:
    if not isinstance(entries, list):
        return None
    for entry in entries:
        known = isinstance(entry, dict) and entry.keys() == vars(PortRecord(1, 1)).keys()
        if not known or not all(type(entry[name]) is bool for name in ("on_host", "auto")):
            return None
        if not all(tcp_port(entry[name]) for name in ("port", "local_port")):
            return None
    return tuple(PortRecord(**entry) for entry in entries)


_PARTS: dict[str, Callable[[Any], object]] = {"local_port": tcp_port, **NAMES}
_KEY = ("host", "name")
_RECORDS = Records(
    "sessions", SessionRecord, _KEY, _PARTS | {"ports": _ports}, lambda record: -record.last_used
)
find, load_all, unreadable = _RECORDS.find, _RECORDS.load_all, _RECORDS.unreadable


def save(record: SessionRecord) -> None:
    """Write a record, whole."""
    _RECORDS.save(record)
    known_names.refresh()


def delete(record: SessionRecord) -> None:
    """Delete a record; one that is gone already is fine."""
    _RECORDS.delete(record)
    known_names.refresh()


@dataclass(frozen=True)
class StopRecord:
    """The session that was stopped last here: a bare `jlr stop` must not stop another one."""

    host: str  # what was typed after `ssh`
    name: str
    stopped: float = field(default_factory=time.time)  # seconds since the epoch


_STOPS = Records("stops", StopRecord, _KEY, NAMES)


def save_stop(host: str, name: str) -> None:
    """Remember that a session was stopped just now, and forget the stop before."""
    for record in _STOPS.load_all():
        _STOPS.delete(record)
    _STOPS.save(StopRecord(host, name))


def latest_stop() -> StopRecord | None:
    """Return the latest stop, `None` for none."""
    return max(_STOPS.load_all(), key=lambda record: record.stopped, default=None)


forget_stop = _STOPS.delete_key  # of a session that is gone for good


@dataclass(frozen=True)
class PortOwner:
    """The owner of a local port, now or earlier: a session's Jupyter server or further port."""

    local_port: int  # TCP port on 127.0.0.1
    host: str  # what was typed after `ssh`
    name: str  # the session's
    port: int | None  # its further port, `None` for its Jupyter server
    last_used: float = field(default_factory=time.time, compare=False)  # seconds since the epoch

    @property
    def in_words(self) -> str:
        session = f"`{self.host}/{self.name}`"
        return session if self.port is None else f"port {self.port} of {session}"


MOST_PORTS = 500  # more than a person's sessions have; beyond it the oldest are forgotten
PORT_OWNERS = Records("ports", PortOwner, ("local_port",), _PARTS, lambda owner: -owner.last_used)


def save_port_owner(owner: PortOwner) -> None:
    """Record the owner of a port, in place of any other."""
    PORT_OWNERS.save(owner)
    for forgotten in PORT_OWNERS.load_all()[MOST_PORTS:]:
        PORT_OWNERS.delete(forgotten)


@dataclass(frozen=True)
class MountRecord:
    """The laptop's record of a mount."""

    local: str  # absolute path of the folder here
    remote: str  # absolute path of the folder on the host
    host: str  # what was typed after `ssh`
    session: str  # empty for a folder that was named by its host
    ssh_config: str | None  # ssh's `-F` of the link that it goes over
    read_only: bool
    made: int  # how many folders jlr made, the local one and parents; they go with the mount

    @property
    def name(self) -> str:
        """The name in the link: a hash, so that it is short and safe on a command line."""
        return hashlib.sha256(os.fsencode(self.local)).hexdigest()[:16]

    def of_session(self, host: str, session: str) -> bool:
        return (self.host, self.session) == (host, session)


MOUNTS = Records("mounts", MountRecord, ("name",), {"host": NAMES["host"]}, lambda one: one.local)
