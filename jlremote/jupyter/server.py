"""A Jupyter server that runs."""

from __future__ import annotations

from dataclasses import dataclass, field

LAB, TREE = "lab", "tree"  # where the page of JupyterLab is, and that of Notebook


@dataclass(frozen=True)
class Server:
    """A running Jupyter server, as its own runtime file and its process tell.

    Attributes:
        pid: process id where it runs.
        process_start: start time of that process in clock ticks since boot; with `pid` it tells
            whether this is still the same process (proc(5), field 22 of `stat`).
        port: TCP port it listens on.
        base_url: path below which it serves, with both slashes.
        token: its token, empty for none; never shown by `repr`.
        password: whether it wants a password in place of a token.
        root_directory: the folder it shows.
        beside_only: whether nobody reaches it but from beside it: it listens on loopback alone, or
            on IPv6, which few containers have outside.
        near: the address at which it is reached from beside it.
        ours: whether jlr launched it.
        python: the interpreter that runs it.
        idle_stop: seconds without work after which it ends by itself, 0 for never or unknown.
        page: `lab` or `tree`: what it was started as, JupyterLab or Notebook.
    """

    pid: int
    process_start: str
    port: int
    base_url: str
    token: str = field(repr=False)
    password: bool
    root_directory: str
    beside_only: bool
    near: str
    ours: bool
    python: str
    idle_stop: int = 0
    page: str = LAB

    @property
    def identity(self) -> tuple[int, str, int]:
        """What no other server has."""
        return self.pid, self.process_start, self.port
