"""What the link asks of this room; the implementations are `connection.py` and `forwarder.py`."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from typing import Any, Literal, Protocol

from jlremote.host.target import Target

Stream = Literal["stdout", "stderr"]
Output = Callable[[Stream, bytes], None]


class Stdin(Protocol):
    """What a script finds on its stdin behind itself, and which comes piece by piece."""

    def take(self) -> bytes | None:
        """Return the next piece, nothing (`b""`) at the end, `None` if it has not come yet."""
        ...

    def on_ready(self, wake: Callable[[], None]) -> None:
        """Have `wake` called whenever there is something to take again."""
        ...


class Terminal(Protocol):
    """The terminal that a script is to believe it runs in."""

    @property
    def kind(self) -> str:
        """What `$TERM` is to be."""
        ...

    @property
    def size(self) -> os.terminal_size:
        """Columns and rows as they are now."""
        ...


class SudoPassword(Protocol):
    """Who knows the password of `sudo` on the host."""

    def password_for(self, script: bytes) -> str | None:
        """Return the password that a script is to be given, `None` for none."""
        ...

    def refused(self) -> None:
        """Learn that `sudo` took it no more."""
        ...


class Connection(Protocol):
    """One authenticated connection to a host whose key was verified."""

    @property
    def transport(self) -> Any:
        """The `paramiko.Transport`; only for this room."""
        ...

    def execute(
        self,
        script: bytes,
        output: Output,
        *,
        timeout: float | None = None,
        cancelled: threading.Event | None = None,
        stdin: Stdin | None = None,
        hold_stdin: bool = False,
        terminal: Terminal | None = None,
    ) -> int:
        """Feed `script` to `exec /bin/sh -s` and return its exit status.

        `output` gets each stream's bytes as they come, from one thread. Both streams are drained
        all the time. At most eight commands run at once, fewer beside relays and mounts (sshd's
        `MaxSessions` is 10); a further call waits its turn. One without a time limit is refused
        while six of those run, or eight with relays and mounts, or they might keep all others
        waiting. A signal's death counts as 128 + its number, as in a shell.

        Args:
            script: what the remote shell reads on its stdin, whole; then comes `stdin`,
                and then end of file, at once or with `hold_stdin` when the call ends.
            output: called with `"stdout"` or `"stderr"` and the bytes.
            timeout: seconds until the call gives up, `None` for never.
            cancelled: ends the call early when it is set; the channel is closed.
            stdin: what the script's commands read. A shell may read ahead, so it must not begin
                before the shell is known to have read the script.
            hold_stdin: keeps the script's stdin open, so that it sees by end of file that nobody
                is there any more, however we went.
            terminal: runs the script in a terminal of its own, where `stdin` is read and
                never ends, and both streams are one. `stdin` wakes us when the size changes, too.

        Raises:
            TimeoutError: `timeout` seconds went by.
            LinkLost: the connection broke, or `cancelled` was set.
            Busy: too many calls without a time limit, or sessions of the server's.
        """
        ...

    def with_sudo_password(self, script: bytes) -> bytes:
        """Return what `sh -s` is to read in place of a script: with the password of `sudo` in it.

        `execute` does that by itself.
        """
        ...

    def run_preemptible(self, script: bytes, output: Output) -> bool:
        """Run `script`, as `execute` does, for as long as nobody else wants its session.

        Then its stdin ends, which is open until then. Return whether it ended before that.

        Raises:
            LinkLost: the connection broke.
            Busy: there is no session to spare.
        """
        ...

    def probe(self, timeout: float) -> float:
        """Return the seconds that a `keepalive@openssh.com` request took to be answered.

        Whatever else comes from the host late in that time counts as well.

        Raises:
            LinkLost: no answer within `timeout` seconds.
        """
        ...

    def refusal(self, address: str, port: int, timeout: float) -> str | None:
        """Return why the server permits no connection from it to there; `None` if it does.

        That nobody listens there, or answers, is no matter of permission.

        Raises:
            LinkLost: the connection broke, or there was no answer within `timeout` seconds.
        """
        ...

    def wait_closed(self, timeout: float | None = None) -> bool:
        """Wait up to `timeout` seconds, or for ever, for its end; return whether it is gone."""
        ...

    def close(self) -> None:
        """Close the connection, jump hosts and proxy commands included. Never raises."""
        ...


class Gateway(Protocol):
    """What a forward needs of the link: a live connection, and where to go."""

    def wait(self, timeout: float) -> tuple[Connection, Target]:
        """Return a connection that is up and a target that was proved, waiting if need be.

        Raises:
            JlrError: there is none within `timeout` seconds; the message says why.
        """
        ...

    def recheck(self) -> None:
        """Learn that the target refused a connection: what was proved may be so no more."""
        ...


class Forward(Protocol):
    """A listener on 127.0.0.1 whose connections end at the gateway's target."""

    @property
    def local_port(self) -> int:
        """The TCP port on 127.0.0.1."""
        ...

    @property
    def failure(self) -> str | None:
        """Why the last connection that was not served was turned away, `None` for none."""
        ...

    def start(self) -> None:
        """Listen.

        Raises:
            Busy: the port is taken.
        """
        ...

    def cut(self) -> None:
        """Reset the connections that have a far end: it is not there any more."""
        ...

    def stop(self) -> None:
        """Stop listening and close what is open. Twice is fine."""
        ...
