"""Read the probe's output: the servers that run, and the state of the session's own one."""

from __future__ import annotations

import re
from collections import defaultdict
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from jlremote.jupyter import recorder
from jlremote.jupyter.endpoint import LAB, TREE, Server
from jlremote.jupyter.recorder import NOT_RECORDED, Recording
from jlremote.jupyter.scripts import SOCKET
from jlremote.place.host import addresses
from jlremote.place.host.addresses import LOCALHOST, Listener
from jlremote.place.host.contract import records
from jlremote.text import one_line
from jlremote.untrusted import absolute_path, count, document, whole_number

BASE_URL = re.compile(r"/(?:[^/\s].*/)?")
TOKEN = re.compile(r"[\x21-\x7e]*")
# Programs, and modules behind `python -m`.
PAGES = {
    **dict.fromkeys(("jupyter-lab", "jupyter-labhub", "jupyterlab"), LAB),
    **dict.fromkeys(("jupyter-notebook", "jupyter-nbclassic", "notebook", "nbclassic"), TREE),
}


@dataclass(frozen=True)
class Findings:
    """The probe's result."""

    directory: str  # empty if the probe was cut: then nothing that is missing means "no"
    jupyter: str  # path of a `jupyter-lab`, `jupyter-notebook` or `jupyter` on the PATH, or empty
    exit_status: int | None  # of the server that jlr launched last, `None` if it has not ended
    servers: tuple[Server, ...]  # servers that run, jlr's own first
    ended: str = ""  # why the last one ended, if on purpose: `stopped` by a command, or `idle`
    definition: str = ""  # the session's `container.json`, where it was asked for
    joined: bool = False  # whether a launch waited for a server that another one began
    launcher: str = ""  # the user of the host who launched jlr's server, where that was noted
    recording: Recording = NOT_RECORDED


def read_probe(output: str) -> Findings:
    """Read the probe's output."""
    printed = records(output)
    facts = {record[0].strip(): record[1].strip() for record in printed if len(record) == 2}
    said = defaultdict(str, facts)
    listeners = addresses.read_listeners(said["listening"])
    servers: dict[int, Server] = {}
    for record in printed:
        if record[0].strip() == "server":
            # Any program there can write such a file.
            with suppress(ValueError, IndexError, RecursionError):
                server = _server(record, said, listeners)
                servers.setdefault(server.pid, server)
    return Findings(
        said["directory"],
        said["jupyter"],
        count(said["exit"]),
        tuple(sorted(servers.values(), key=lambda server: not server.ours)),
        said["ended"],
        said["definition"],
        "joined" in facts,
        one_line(said["launcher"]),
        recorder.read(next((one for one in printed if one[0].strip() == "recorder"), [])),
    )


def _server(record: list[str], said: dict[str, str], listeners: tuple[Listener, ...]) -> Server:
    _, path, pid, text, stat, descriptors, executable, words = record
    facts = _facts(text)
    inodes = addresses.socket_inodes(descriptors)
    ours = path.startswith(f"{said['directory']}/runtime/")
    sock = str(facts.get("sock") or "")
    # Another user's descriptors cannot be read, and then the port alone has to do. Those of jlr's
    # own server can: a process that hides them got the pid after that server's end.
    by_port_alone = not inodes and not ours
    at_port = (one for one in listeners if one.port == facts["port"])
    held = tuple(one for one in at_port if by_port_alone or one.inode in inodes)
    if not (_holds(sock, said, inodes) if sock else held):
        raise ValueError("the process does not hold the port or the socket")
    return Server(
        pid=whole_number(pid),
        process_start=stat.rpartition(")")[2].split()[19],
        port=facts["port"],
        base_url=facts["base_url"],
        token=facts["token"],
        password=bool(facts.get("password")),
        root_directory=facts.get("root_dir") or facts.get("notebook_dir") or "",
        # Jupyter's IPv6 sockets never take IPv4.
        loopback_only=all(not one.is_ipv4 or one.address.startswith("127.") for one in held),
        loopback=_near(held),
        ours=ours,
        python=executable.partition(" -> ")[2].strip() or "python3",  # another user's is not told
        idle_stop=(count(said["idle-stop"]) or 0) if ours else 0,
        page=_page(path, words.split("\0")),
        sock=sock,
        secure=bool(facts.get("secure")),
        called=words.partition("\0")[0],
    )


def _holds(sock: str, said: dict[str, str], inodes: frozenset[str]) -> bool:
    folder, _, name = sock.rpartition("/")
    own = folder == f"{said['directory']}/runtime" and name.startswith(SOCKET)
    return own and bool(addresses.listening_inodes(said["sockets"], sock) & inodes)


def _near(held: tuple[Listener, ...]) -> str:
    """Return the address at which a server's own machine reaches one of its sockets."""
    bound = [one for one in held if one.is_ipv4]
    if held and not bound:
        return addresses.LOCALHOST_6
    anywhere = not bound or any(one.everywhere or one.address == LOCALHOST for one in bound)
    return LOCALHOST if anywhere else bound[0].address


def _page(path: str, words: list[str]) -> str:
    """Return the page that a server was started for, by its program or its runtime file's name."""
    # The interpreter, its options and the script or module; the rest may be any path.
    for word in words[:4]:
        program = word.rpartition("/")[2]
        if program in PAGES:
            return PAGES[program]
    return TREE if path.rpartition("/")[2].startswith("nbserver-") else LAB


def _facts(text: str) -> dict[str, Any]:
    """Return the contents of a runtime file; half of one, or another file, is a `ValueError`."""
    facts = document(text)
    wanted = {"port": int, "base_url": str, "token": str}
    if not isinstance(facts, dict) or not all(
        isinstance(facts.get(key), kind) for key, kind in wanted.items()
    ):
        raise ValueError("not a Jupyter server's file")
    # They become parts of a URL and of a header.
    path = absolute_path(facts["base_url"])
    if not BASE_URL.fullmatch(path) or not TOKEN.fullmatch(facts["token"]):
        raise ValueError("not a path or a token of Jupyter's")
    return facts
