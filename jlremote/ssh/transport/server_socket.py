"""A socket to the server: to its first address that answers, or to a ProxyCommand."""

from __future__ import annotations

import contextlib
import errno
import os
import queue
import signal
import socket
import subprocess
import sys
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from jlremote.errors import NameNotResolved, Unreachable
from jlremote.ssh.config.destination import Destination
from jlremote.text import one_line, reason_of

_ASK_AGAIN_SECONDS = 1.0
# The same where there is a connection and no greeting.
_SILENT_SECONDS = 2.0
_FAMILIES = {"inet": socket.AF_INET, "inet6": socket.AF_INET6}

_END_SECONDS = 2.0
_KEPT = 4096  # bytes of a proxy command's last output

_Address = tuple[socket.AddressFamily, Any]
_Answer = tuple[_Address, socket.socket | OSError]


def connect_tcp(destination: Destination, greeting: bytes) -> socket.socket:
    """Return a socket to the first address that answers, on which the server has greeted.

    Our own `greeting` is sent first; some servers wait for it. If none answers, raise the `OSError`
    of the address that failed last; `NameNotResolved` if there is none of the wanted family.
    """
    host, family = destination.hostname, _FAMILIES.get(destination.address_family, 0)
    try:
        answers = socket.getaddrinfo(host, destination.port, family, socket.SOCK_STREAM)
    except UnicodeError as error:  # a part between dots is empty or has more than 63 letters
        message = f"`{host}` cannot be the name of a host: {error.__cause__ or error}"
        hint = "check the name, and `HostName` in your ssh config"
        raise NameNotResolved(message, hint=hint) from error
    addresses: list[_Address] = list(dict.fromkeys((one[0], one[4]) for one in answers))
    if not addresses:
        message = f"`{host}` has no address of the family `{destination.address_family}`"
        raise NameNotResolved(message, hint="check `AddressFamily` in your ssh config")
    return _Caller(destination, greeting).call(addresses)


@dataclass(frozen=True)
class _Caller:
    """Connects to each address in turn, again and again, until one of the attempts is answered.

    The kernel repeats a lost SYN after 1, 3, 7 and 15 s, so on a network that has just come back a
    first attempt may wait for long, while another one is answered at once; and what a NAT box or a
    proxy has swallowed is never answered. Earlier ones wait all the same, each in a thread: a line
    may be slow. A server that is slow to greet is called more rarely. Of several addresses, as
    login nodes have them, a dead one costs a second and not the whole `ConnectTimeout`.
    """

    destination: Destination
    greeting: bytes
    begun: list[socket.socket] = field(default_factory=list)
    silent: list[socket.socket] = field(default_factory=list)  # connected, and not greeted yet
    answers: queue.SimpleQueue[_Answer] = field(default_factory=queue.SimpleQueue)

    def call(self, addresses: list[_Address]) -> socket.socket:
        limit = time.monotonic() + self.destination.step_seconds
        limit += _ASK_AGAIN_SECONDS * (len(addresses) - 1)
        answered = None
        try:
            while (left := limit - time.monotonic()) > 0:
                addresses.append(next_one := addresses.pop(0))
                self._begin(next_one)
                pause = _SILENT_SECONDS if self.silent else _ASK_AGAIN_SECONDS
                with contextlib.suppress(queue.Empty):
                    address, answer = self.answers.get(timeout=min(left, pause))
                    if isinstance(answer, socket.socket):
                        answered = answer
                        return answer
                    addresses = [one for one in addresses if one != address]
                    if not addresses:
                        raise answer
        finally:
            for sock in self.begun:
                if sock is not answered:
                    sock.close()
        raise TimeoutError

    def _begin(self, address: _Address) -> None:
        try:
            sock = socket.socket(address[0], socket.SOCK_STREAM)
        except OSError as error:  # the system has no such family
            self.answers.put((address, error))
            return
        self.begun.append(sock)
        sock.settimeout(self.destination.step_seconds)
        threading.Thread(target=self._attempt, args=(sock, address), daemon=True).start()

    def _attempt(self, sock: socket.socket, address: _Address) -> None:
        try:
            _bind(sock, self.destination.bind_address, address[0])
            sock.connect(address[1])
            self.silent.append(sock)
            sock.sendall(self.greeting)
        except OSError as error:
            self.answers.put((address, error))
            return
        with contextlib.suppress(OSError):  # one that hangs up has answered, too
            sock.recv(1, socket.MSG_PEEK)
        self.answers.put((address, sock))


def _bind(sock: socket.socket, ours: str | None, family: socket.AddressFamily) -> None:
    if ours is None:
        return
    try:
        sock.bind(socket.getaddrinfo(ours, 0, family, socket.SOCK_STREAM)[0][4])
    except (OSError, UnicodeError) as error:  # no address of this machine, or no address at all
        reason = getattr(error, "strerror", None) or "it cannot be an address"
        raise OSError(errno.EADDRNOTAVAIL, f"`BindAddress {ours}`: {reason}") from error


class ProxyProcess:
    """The process of a proxy command, in `folder` or ours; its `socket` is our end.

    A socket pair instead of paramiko's `ProxyCommand`: the command's death closes its end, so the
    connection ends at once, where paramiko's wrapper spins.
    """

    def __init__(self, command: str, folder: Path | None = None) -> None:
        start = _started_on_windows if sys.platform == "win32" else _started
        self._process, self.socket = start(command, folder)
        self._last_output = b""
        # Read all the time: a command that prints much, such as `ssh -v`, would block.
        self._reader = threading.Thread(target=self._read, name="jlr proxy", daemon=True)
        self._reader.start()

    def _read(self) -> None:
        assert self._process.stderr is not None
        with self._process.stderr as stream:
            while output := os.read(stream.fileno(), _KEPT):
                self._last_output = (self._last_output + output)[-_KEPT:]

    def receive_descriptor(self, seconds: float) -> socket.socket:
        """Return the connected socket that the command hands over (ProxyUseFdpass).

        `Unreachable` if it hands over none, `TimeoutError` if it sends nothing within `seconds`.
        """
        if sys.platform == "win32":
            raise Unreachable("Windows hands over no connections", hint="remove `ProxyUseFdpass`")
        self.socket.settimeout(seconds)
        _, descriptors, _, _ = socket.recv_fds(self.socket, 1, 1)
        if not descriptors:
            hint = "remove `ProxyUseFdpass`, or pass a descriptor as `nc -F` does"
            raise Unreachable("the proxy command handed over no connection", hint=hint)
        return socket.socket(fileno=descriptors[0])

    def complaint(self) -> str:
        """Return the last lines that a dead command printed."""
        self._reader.join(_END_SECONDS)
        lines = self._last_output.decode("utf-8", "replace").strip().splitlines()
        return one_line(" / ".join(lines[-3:]))

    def close(self) -> None:
        """End the command and everything that it started. Never raises."""
        self.socket.close()
        if sys.platform == "win32":
            with self._process:
                self._process.kill()  # what it has started sees its streams end
                self._reader.join(_END_SECONDS)
            return
        for signal_number in (signal.SIGTERM, signal.SIGKILL):
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self._process.pid, signal_number)
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(_END_SECONDS)
                break
        self._reader.join(_END_SECONDS)


def _started(command: str, folder: Path | None) -> tuple[subprocess.Popen[bytes], socket.socket]:
    ours, theirs = socket.socketpair()
    shell = os.environ.get("SHELL") or "/bin/sh"
    try:
        process = subprocess.Popen(
            (shell, "-c", f"exec {command}"),
            stdin=theirs.fileno(),
            stdout=theirs.fileno(),
            stderr=subprocess.PIPE,
            cwd=folder,
            start_new_session=True,
        )
    except OSError:
        ours.close()
        raise
    finally:
        theirs.close()
    return process, ours


def _started_on_windows(
    command: str, folder: Path | None
) -> tuple[subprocess.Popen[bytes], socket.socket]:
    """Start it by no shell, as ssh does there, on pipes: a socket is no stream of a process."""
    from jlremote.laptop.windows import socket_of

    pipe = subprocess.PIPE
    try:
        process = subprocess.Popen(
            command, bufsize=0, stdin=pipe, stdout=pipe, stderr=pipe, cwd=folder
        )
    except OSError as failure:
        message = f"the proxy command `{command}` does not start: {reason_of(failure)}"
        hint = "check `ProxyCommand` in your ssh config: on Windows no shell runs it"
        raise Unreachable(message, hint=hint) from failure
    assert process.stdin is not None
    assert process.stdout is not None
    return process, socket_of(process.stdout.read, process.stdin.write, process.stdin.close)
