"""A Jupyter server that runs."""

from __future__ import annotations

from dataclasses import dataclass, field
from urllib.parse import quote, urlencode

LAB, TREE = "lab", "tree"  # where the page of JupyterLab is, and that of Notebook


@dataclass(frozen=True)
class Server:
    """A running Jupyter server, as its runtime file and its process describe it."""

    pid: int  # process id where it runs
    # start time of that process in clock ticks since boot; with `pid` it tells whether this is
    # still the same process (proc(5), field 22 of `stat`)
    process_start: str
    port: int  # TCP port it listens on, 0 with `sock`
    base_url: str  # path below which it serves, with both slashes
    token: str = field(repr=False)  # its token, empty for none; never shown by `repr`
    password: bool  # whether it wants a password in place of a token
    root_directory: str  # the folder it shows
    # whether it is reached from its own machine alone: it listens on loopback, or on IPv6, which
    # few containers have outside
    loopback_only: bool
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
        """The pid, its start time and the port: together they belong to one server only."""
        return self.pid, self.process_start, self.port

    def address(self, local_port: int, path: str | None = None, name: str = "127.0.0.1") -> str:
        """Return the URL, with the token, of its page or of a path below its root.

        `name` is this machine's, under which the server answers.
        """
        page = self.page
        if path:
            files = "lab/tree" if page == LAB else page  # Notebook redirects a file to its own page
            page = f"{files}/{quote(path.strip('/'))}"
        query = f"?{urlencode({'token': self.token})}" if self.token else ""
        return f"http://{name}:{local_port}{quote(self.base_url)}{page}{query}"
