"""The protocols between the link and this room."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Literal, Protocol

from jlremote.place.host.addresses import Target

Stream = Literal["stdout", "stderr"]
Output = Callable[[Stream, bytes], None]

NOTHING: Mapping[str, str] = MappingProxyType({})


class Stdin(Protocol):
    """Input that follows a script on its stdin, and arrives piece by piece."""

    def take(self) -> bytes | None:
        """Return the next piece, empty at the end, `None` if it has not arrived yet."""

    def on_ready(self, wake: Callable[[], None]) -> None:
        """Call `wake` whenever there may be another piece."""


@dataclass
class Terminal:
    """The terminal of a script: `$TERM` there, and its size, which follows the person's."""

    kind: str
    size: os.terminal_size


class SudoPassword(Protocol):
    """The source of the password for `sudo` on the host."""

    def password_for(self, script: bytes) -> str | None:
        """Return the password that `script` needs, `None` for none."""

    def refused(self) -> None:
        """Note that `sudo` seems to have refused the password."""


class Connection(Protocol):
    """One authenticated connection to a host whose key was verified."""

    @property
    def transport(self) -> Any:
        """The `paramiko.Transport`; only for this room."""

    @property
    def description(self) -> str:
        """The server's software, the type of its key and the cipher, on one line."""

    @property
    def reason(self) -> str:
        """Why the connection ended, in one line of the server or the system; may be empty."""

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
        variables: Mapping[str, str] = NOTHING,
    ) -> int:
        """Feed `script` to `/bin/sh -s` and return its exit status, 128 + N for signal N.

        Both output streams are drained all the time. Where the server opens no further session (its
        `MaxSessions` is 10), the call waits while others that have a time limit run. A call without
        one is refused while eight such calls, relays and mounts are open, so that short commands
        always find a session.

        Args:
            script: the whole script; then comes `stdin`, and then end of file.
            output: called from one thread with the stream and the bytes.
            timeout: seconds until the call gives up, `None` for never.
            cancelled: when set, the channel is closed and the call ends early.
            stdin: input for the script's commands. A shell may read ahead, so it must not begin
                before the shell is known to have read the script.
            hold_stdin: puts the end of file off until the connection is gone, for whatever reason.
            terminal: runs the script in a terminal of its own, in which `stdin` never ends and
                both streams are one. `stdin` also wakes the call when the size changes.
            variables: set for the shell, as far as the server accepts them.

        Raises:
            TimeoutError: `timeout` seconds went by.
            LinkLost: the connection broke, or `cancelled` was set.
            NoShell: another shell than `sh` reads scripts, where there is `stdin`.
            Busy: too many calls without a time limit, or too many sessions for the server.
        """

    def with_sudo_password(self, script: bytes) -> bytes:
        """Return `script` for `sh -s` with the password of `sudo` in it, as `execute` sends it."""

    def run_preemptible(self, script: bytes, output: Output) -> bool:
        """Run `script` until it ends or another command needs its session.

        Its stdin stays open until then. Return whether the script ended by itself. Errors are those
        of `execute`.
        """

    def probe(self, timeout: float) -> float:
        """Return the seconds until the host answered, or sent anything late in that time.

        Raises:
            LinkLost: no answer within `timeout` seconds.
        """

    def refusal(self, address: str, port: int, timeout: float) -> str | None:
        """Return why the server does not permit forwarding to an address; `None` if it does.

        A port on which nothing listens or answers is permitted.

        Raises:
            LinkLost: the connection broke, or there was no answer within `timeout` seconds.
        """

    def reaches(self, path: str, timeout: float) -> bool:
        """Return whether the server connects to a unix socket on which a program listens.

        OpenSSH gives no reason: `AllowStreamLocalForwarding no` looks like a path that is absent.

        Raises:
            LinkLost: the connection broke, or there was no answer within `timeout` seconds.
        """

    def wait_closed(self, timeout: float | None = None) -> bool:
        """Wait up to `timeout` seconds, or for ever, until it is gone; return whether it is."""

    def close(self) -> None:
        """Close the connection, jump hosts and proxy commands included. Never raises."""


class Gateway(Protocol):
    """The link, as a forward needs it: a live connection and the target on it."""

    def wait(self, timeout: float) -> tuple[Connection, Target]:
        """Return a live connection and a target that was proved on it, waiting if need be.

        Raises:
            JlrError: there is none within `timeout` seconds; the message says why.
        """

    def confirm(self, timeout: float) -> tuple[Connection, Target]:
        """Return both after a proof that begins now, for connections that are open by now."""

    def recheck(self) -> None:
        """Prove the target again: it has refused a connection."""


class Forward(Protocol):
    """A listener on 127.0.0.1; connections to it end at the gateway's target."""

    @property
    def local_port(self) -> int:
        """The TCP port on 127.0.0.1."""

    @property
    def failure(self) -> str | None:
        """Why the last refused connection was refused, `None` if there was none."""

    def start(self) -> None:
        """Listen; `Busy` if the port is taken."""

    def cut(self) -> None:
        """Reset the connections that have a far end, because it is gone."""

    def stop(self) -> None:
        """Stop listening and close all connections. Twice is fine."""
