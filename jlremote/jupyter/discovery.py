"""What the probe printed, read: which servers run there, and how the host reaches them."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from jlremote.host.target import Target
from jlremote.jupyter.server import LAB, TREE, Endpoint, Place, Server
from jlremote.runtimes.contract import Container, Runtime
from jlremote.text import one_line

BASE_URL = re.compile(r"/(?:[^/\s].*/)?")
TOKEN = re.compile(r"[\x21-\x7e]*")
FIELD, RECORD = "\037", "\036"
LOCALHOST, LOCALHOST_6 = "127.0.0.1", "::1"
# As in /proc/net/tcp and tcp6: words of 32 bits in hexadecimal, each with its last byte first.
IPV4_DIGITS, LOOPBACK_END = 8, "7F"
# Programs, and modules behind `python -m`.
PAGES = {
    **dict.fromkeys(("jupyter-lab", "jupyter-labhub", "jupyterlab"), LAB),
    **dict.fromkeys(("jupyter-notebook", "jupyter-nbclassic", "notebook", "nbclassic"), TREE),
}


@dataclass(frozen=True)
class Findings:
    """What the probe found.

    Attributes:
        directory: the session's folder.
        jupyter: path of a `jupyter-lab`, `jupyter-notebook` or `jupyter` on the PATH, or empty.
        exit_status: how the server that jlr launched last has ended, `None` if it has not.
        servers: servers that run, ours first.
        ended: why the last one ended, where it was no accident: `stopped` by a person, or `idle`.
        sockets: paths on which servers listen that have no port.
    """

    directory: str
    jupyter: str
    exit_status: int | None
    servers: tuple[Server, ...]
    ended: str = ""
    sockets: tuple[str, ...] = ()


@dataclass(frozen=True)
class _Listener:
    address: str
    port: int
    inode: str

    @property
    def is_ipv4(self) -> bool:
        return len(self.address) == IPV4_DIGITS

    @property
    def from_outside(self) -> bool:
        """Whether it is on an address that others reach; Jupyter's IPv6 never takes IPv4, too."""
        return self.is_ipv4 and not self.address.endswith(LOOPBACK_END)


def read_probe(output: str) -> Findings:
    """Return what the probe's output tells."""
    records = [record.split(FIELD) for record in output.split(RECORD)]
    single = {record[0].strip(): record[1] for record in records if len(record) == 2}
    listeners = tuple(_listeners(single.get("listening", "")))
    directory = single.get("directory", "")
    idle_stop = single.get("idle-stop", "").strip()
    servers: dict[int, Server] = {}
    for record in records:
        if record[0].strip() == "server":
            # Whoever runs in there can write anything into a file of that name.
            with suppress(ValueError, IndexError, RecursionError):
                server = _server(record, directory, listeners, idle_stop)
                servers.setdefault(server.pid, server)
    status = single.get("exit", "").strip()
    return Findings(
        directory,
        single.get("jupyter", "").strip(),
        int(status) if status.isdigit() else None,
        tuple(sorted(servers.values(), key=lambda server: not server.ours)),
        single.get("ended", "").strip(),
        tuple(_sockets(records)),
    )


def _sockets(records: list[list[str]]) -> Iterable[str]:
    """Give the paths of servers that somebody has started with `--sock`."""
    for record in records:
        with suppress(ValueError, IndexError, AttributeError, RecursionError):
            path = json.loads(record[3]).get("sock") if record[0].strip() == "server" else None
            if isinstance(path, str) and path:
                yield one_line(path)


def _listeners(table: str) -> Iterable[_Listener]:
    for line in table.splitlines():
        columns = line.split()
        if len(columns) > 9:
            address, _, port = columns[1].partition(":")
            yield _Listener(address, int(port, 16), columns[9])


def _server(
    record: list[str], directory: str, listeners: tuple[_Listener, ...], idle_stop: str
) -> Server:
    """Return the server of one runtime file if its process really holds its port.

    Raises:
        ValueError: it does not, or this is no runtime file.
    """
    _, path, pid, text, stat, descriptors, executable, words = record
    facts = _facts(text)
    inodes = set(re.findall(r"socket:\[(\d+)\]", descriptors))
    ours = path.startswith(f"{directory}/runtime/")
    held = [
        listener
        for listener in listeners
        if listener.port == facts["port"]
        # Another user's descriptors cannot be read, and then the port alone has to do. Those of
        # our own server can: a process that hides them has got its id after our server's end.
        and (listener.inode in inodes or (not inodes and not ours))
    ]
    if not held:
        raise ValueError("the port is not the process's")
    return Server(
        pid=int(pid),
        process_start=stat.rpartition(")")[2].split()[19],
        port=facts["port"],
        base_url=facts["base_url"],
        token=facts["token"],
        password=bool(facts.get("password")),
        root_directory=facts.get("root_dir") or facts.get("notebook_dir") or "",
        beside_only=not any(listener.from_outside for listener in held),
        near=LOCALHOST if any(listener.is_ipv4 for listener in held) else LOCALHOST_6,
        ours=ours,
        python=executable.rpartition(" -> ")[2].strip(),
        idle_stop=int(idle_stop) if ours and idle_stop.isdigit() else 0,
        page=_page(path, words.split("\0")),
    )


def _page(path: str, words: list[str]) -> str:
    """Return what a server was started as, told by its program, else by its runtime file's name."""
    # The interpreter, its options and the script or module; what follows may be any path.
    for word in words[:4]:
        program = word.rpartition("/")[2]
        if program in PAGES:
            return PAGES[program]
    return TREE if path.rpartition("/")[2].startswith("nbserver-") else LAB


def _facts(text: str) -> dict[str, Any]:
    """Return what a runtime file says.

    Raises:
        ValueError: it is being written right now, or it is not Jupyter's.
    """
    facts = json.loads(text)
    wanted = {"port": int, "base_url": str, "token": str}
    if not isinstance(facts, dict) or not all(
        isinstance(facts.get(key), kind) for key, kind in wanted.items()
    ):
        raise ValueError("not a Jupyter server's file")
    # They become a part of a URL and of a header.
    if not BASE_URL.fullmatch(facts["base_url"]) or not TOKEN.fullmatch(facts["token"]):
        raise ValueError("neither a path nor a token that Jupyter takes")
    return facts


def place_of(runtime: Runtime, container: Container) -> Place:
    """Return where a session is that is in `container` now."""
    return Place(runtime.name, container.name, container.id, container.started_at)


def endpoint(runtime: Runtime, container: Container, server: Server) -> Endpoint:
    """Return how the host reaches `server`.

    A container's own address needs no published port: an existing container works as it is, and
    nothing opens on the host. Where there is no such address, or the server listens on the
    container's loopback only, a relay through the engine's `exec` goes in.
    """
    place = place_of(runtime, container)
    address = next(iter(container.addresses), None)
    if container.on_host_network:
        return Endpoint(place, server, Target(server.near, server.port))
    if address and not server.beside_only:
        return Endpoint(place, server, Target(address, server.port))
    # By its id: another one may have its name by the time that the relay starts.
    prefix = runtime.relay_prefix(container.id)
    return Endpoint(place, server, Target(server.near, server.port, (*prefix, server.python)))
