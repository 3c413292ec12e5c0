"""A Jupyter server, the far end of a forward, and the name of its near end in a browser."""

from __future__ import annotations

import hashlib
import re
import time
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote, urlencode

from jlremote.place.host.addresses import LOOPBACK, Target
from jlremote.place.runtimes.place import Place
from jlremote.times import left

LAB, TREE = "lab", "tree"  # where the page of JupyterLab is, and that of Notebook


@dataclass(frozen=True)
class Server:
    """A running Jupyter server, as its runtime file and its process describe it."""

    pid: int  # process id where it runs
    process_start: str  # in clock ticks since boot (proc(5), field 22 of `stat`)
    port: int  # TCP port it listens on, 0 with `sock`
    base_url: str  # path below which it serves, with both slashes
    token: str = field(repr=False)  # its token, empty for none; never shown by `repr`
    password: bool  # whether it wants a password in place of a token
    root_directory: str  # the folder it shows
    loopback_only: bool  # whether it listens on loopback, or on IPv6, which few reach from outside
    loopback: str  # the address at which its own machine reaches it
    ours: bool  # whether jlr launched it
    python: str  # the interpreter that runs it
    idle_stop: int = 0  # seconds without work after which it ends by itself, 0 for never or unknown
    page: str = LAB  # `lab` or `tree`: it was started as JupyterLab or as Notebook
    sock: str = ""  # the unix socket it listens on in place of a port
    secure: bool = False  # whether it speaks TLS
    called: str = ""  # the interpreter as it was called, by which it knows its environment

    @property
    def identity(self) -> tuple[int, str, int]:
        return self.pid, self.process_start, self.port

    def address(self, local_port: int, path: str | None = None, name: str = "127.0.0.1") -> str:
        """Return the URL, with the token, of its page or of a path below its root."""
        page = self.page
        if path:
            files = "lab/tree" if page == LAB else page  # Notebook redirects a file to its own page
            page = f"{files}/{quote(path.strip('/'))}"
        return url(name, local_port, f"{quote(self.base_url)}{page}", self.token)


def url(name: str, local_port: int, path: str = "/", token: str = "") -> str:
    """Return the URL of a forward, of all that jlr prints, opens or hands to a program.

    `name` is 127.0.0.1 for programs, or what a browser is given; `path` is quoted.
    """
    query = f"?{urlencode({'token': token})}" if token else ""
    return f"http://{name}:{local_port}{path}{query}"


@dataclass(frozen=True)
class Endpoint:
    """A port of a place, and the way there."""

    place: Place
    port: int  # TCP port there
    server: Server | None = None  # that listens on it; `None` for a further port
    python: str = ""  # an interpreter there, for a relay; empty if none is known
    target: Target | None = None  # the way there as it was proved last, `None` before
    on_host: bool = False  # whether it is the host's own port, where its services listen, too
    until: float | None = None  # when a time limit ends the place, in seconds since the epoch

    @property
    def further_port(self) -> int | None:
        """The port where no server is known on it, `None` for a session's server."""
        return self.port if self.server is None else None

    @property
    def changeable(self) -> bool:
        """Whether another program behind the relay can take the further port at any time."""
        target = self.target if self.server is None else None
        if target is None or target.node:
            return False
        return target.relay is not None and target.address in LOOPBACK


def endpoint_from_json(message: dict[str, Any]) -> Endpoint:
    """Return the endpoint that `asdict` described, as it crosses the link's socket."""
    server, target = message["server"], message["target"]
    if target is not None:
        relay = target["relay"]
        target = Target(**{**target, "relay": None if relay is None else tuple(relay)})
    parts = {"place": Place(**message["place"]), "server": server and Server(**server)}
    return Endpoint(**{**message, **parts, "target": target})


WARNED_SECONDS = 900


def time_limit_warning(host: str, session: str, until: float | None) -> str | None:
    """Return the sentence about a limit that ends a session soon; `until` is since the epoch."""
    if until is None or until - time.time() > WARNED_SECONDS:
        return None
    ends = f"its time limit ends it in {left(until)}, and its kernels with it"
    return f"{ends}; `jlr start {host}/{session} --renew` queues a successor"


# Browsers share cookies between all ports of 127.0.0.1, so a page of one session would make them
# send another's. They resolve `*.localhost` themselves (RFC 6761, section 6.3), to loopback only.
# One label, and not `cont1.dgx.localhost`: pages below the same `dgx.localhost` are one site, whose
# requests carry each other's cookies in spite of `SameSite`.
LONGEST_LABEL = 63  # RFC 1035, section 2.3.4
DIGITS = 12

# Names of these forms stand in a label as they are, and no two pairs of them make the same label.
_SESSION = re.compile(r"[a-z][a-z0-9]*(-[a-z0-9]+)*")
_HOST = re.compile(r"[a-z][a-z0-9]*")


def hostname(host: str, session: str, port: int | None = None) -> str:
    """Return the name of a session's forward in a browser, as `cont1-dgx.localhost`."""
    words = (*(() if port is None else (str(port),)), session, host)
    label = "-".join(words)
    plain = _SESSION.fullmatch(session) and _HOST.fullmatch(host)
    if not plain or len(label) > LONGEST_LABEL:
        # Only these words have it; its last part, unlike a host, begins with 0.
        digest = hashlib.sha256("\0".join(words).encode("utf-8", "surrogateescape")).hexdigest()
        begin = re.sub(r"[^a-z0-9]+", "-", label.lower()).strip("-")
        begin = begin[: LONGEST_LABEL - DIGITS - 2].rstrip("-")
        label = f"{begin}-0{digest[:DIGITS]}".removeprefix("-")
    return f"{label}.localhost"
