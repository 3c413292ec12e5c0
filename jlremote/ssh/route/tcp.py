"""The way to a server's port: straight, through a proxy command, or through a jump host."""

from __future__ import annotations

import contextlib
import errno
import os
import selectors
import signal
import socket
import subprocess
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Protocol, cast

import paramiko

from jlremote.errors import LinkLost, NameNotResolved, Unreachable
from jlremote.ssh.config.destination import Destination
from jlremote.ssh.failures import explain_channel
from jlremote.text import one_line

# ssh waits as long as the system does, two minutes; nobody waits that long for a command.
DEFAULT_SECONDS = 30.0
ASK_AGAIN_SECONDS = 1.0
# Where there is a connection and no greeting.
SILENT_PAUSES = (1.5, 1.5, 1.5, 2.0, 2.0)
LONGEST_SILENT_PAUSE = 3.0
READ, WRITE = selectors.EVENT_READ, selectors.EVENT_WRITE
_FAMILIES = {"any": socket.AF_UNSPEC, "inet": socket.AF_INET, "inet6": socket.AF_INET6}
_END_SECONDS = 2.0
_KEPT = 4096  # bytes of what a proxy command says


class Way(Protocol):
    """Something that has to be closed after the connection that went over it."""

    def close(self) -> None:
        """Close it. Never raises."""
        ...


def step_seconds(destination: Destination) -> float:
    """Return the seconds for each step until the server shows its key."""
    return destination.connect_timeout or DEFAULT_SECONDS


def straight(destination: Destination, greeting: bytes) -> socket.socket:
    """Return a socket connected to the first address that answers, where the server has greeted.

    Args:
        destination: where to.
        greeting: our own, which is sent first; some servers wait for it.

    Raises:
        OSError: none did; the error is the last address's.
        NameNotResolved: there is none of the wanted family.
    """
    last: OSError | None = None
    for family, address in _addresses(destination):
        try:
            with selectors.DefaultSelector() as calls:
                return _Caller(destination, family, address, greeting, calls).call()
        except OSError as error:
            last = error
    raise last or NameNotResolved(
        f"`{destination.hostname}` has no address of the family `{destination.address_family}`",
        hint="check `AddressFamily` in your ssh config",
    )


@dataclass(frozen=True)
class _Caller:
    """Calls one address again and again, until one of the calls is answered.

    The kernel repeats a lost SYN after 1, 3, 7 and 15 s, so on a network that has just come back a
    first call may go on waiting for long, while another one is answered at once; and what a NAT box
    or a proxy has swallowed is never answered. The first waits all the same: a line may be slow.
    A server that is slow to greet is called ever more rarely.
    """

    destination: Destination
    family: socket.AddressFamily
    address: Any
    greeting: bytes
    calls: selectors.BaseSelector

    def call(self) -> socket.socket:
        """Return the socket that was answered; the others are closed."""
        seconds = step_seconds(self.destination)
        limit = time.monotonic() + seconds
        pauses = iter(SILENT_PAUSES)
        first = self._dial()
        try:
            while (left := limit - time.monotonic()) > 0:
                silent = any(call.events == READ for call in self.calls.get_map().values())
                pause = next(pauses, LONGEST_SILENT_PAUSE) if silent else ASK_AGAIN_SECONDS
                answered = self._answered(min(left, pause))
                if answered is not None:
                    self.calls.unregister(answered)
                    answered.settimeout(seconds)
                    return answered
                self._hang_up(but=first)
                self._dial()
        finally:
            self._hang_up()
        raise TimeoutError

    def _dial(self) -> socket.socket:
        sock = socket.socket(self.family, socket.SOCK_STREAM)
        try:
            sock.setblocking(False)
            _bind(sock, self.destination, self.family)
            _raise(sock.connect_ex(self.address))
        except BaseException:
            sock.close()
            raise
        self.calls.register(sock, WRITE)
        return sock

    def _answered(self, seconds: float) -> socket.socket | None:
        """Return the first socket on which something comes within so many seconds."""
        limit = time.monotonic() + seconds
        while (left := limit - time.monotonic()) > 0:
            for call, _ in self.calls.select(left):
                sock = cast("socket.socket", call.fileobj)
                if call.events == READ:
                    return sock
                _raise(sock.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR))
                sock.send(self.greeting)  # nothing was sent before, so there is room
                self.calls.modify(sock, READ)
        return None

    def _hang_up(self, but: socket.socket | None = None) -> None:
        """Give up all calls; with `but` only those that are not connected, and not that one."""
        for call in list(self.calls.get_map().values()):
            sock = cast("socket.socket", call.fileobj)
            if but is None or (sock is not but and call.events == WRITE):
                self.calls.unregister(sock)
                sock.close()


def _raise(code: int) -> None:
    if code not in (0, errno.EINPROGRESS, errno.EWOULDBLOCK):
        raise OSError(code, os.strerror(code))


def _addresses(destination: Destination) -> Iterator[tuple[socket.AddressFamily, Any]]:
    family = _FAMILIES[destination.address_family]
    found = socket.getaddrinfo(destination.hostname, destination.port, family, socket.SOCK_STREAM)
    for family, _, _, _, address in found:
        yield family, address


def _bind(sock: socket.socket, destination: Destination, family: socket.AddressFamily) -> None:
    if destination.bind_address is None:
        return
    found = socket.getaddrinfo(destination.bind_address, 0, family, socket.SOCK_STREAM)
    sock.bind(found[0][4])


def through_jump(transport: Any, jump: Destination, destination: Destination) -> Any:
    """Return a channel from a jump host to the server, the way `ssh -W` goes.

    Raises:
        Unreachable: the jump host cannot or may not connect to it.
    """
    seconds = step_seconds(destination)
    try:
        return transport.open_channel(
            "direct-tcpip",
            (destination.hostname, destination.port),
            ("127.0.0.1", 0),
            timeout=seconds,
        )
    except paramiko.ChannelException as error:
        raise explain_channel(error, destination.place, jump.place) from error


def refusal(transport: Any, address: str, port: int, seconds: float) -> str | None:
    """Return why a server permits no connections onwards; see `contract.Connection.refusal`."""
    try:
        transport.open_channel(
            "direct-tcpip", (address, port), ("127.0.0.1", 0), timeout=seconds
        ).close()
    except paramiko.ChannelException as error:
        if error.code == paramiko.common.OPEN_FAILED_ADMINISTRATIVELY_PROHIBITED:
            return f"administratively prohibited: {one_line(str(error.text))}"
    except (paramiko.SSHException, EOFError, OSError) as error:
        raise LinkLost(f"the server did not say whether it permits connections: {error}") from error
    return None


class ProxyProcess:
    """A running ProxyCommand, whose stdin and stdout are one end of a socket pair.

    A real socket instead of paramiko's `ProxyCommand`: the command's death closes its end, so the
    connection ends at once, where paramiko's wrapper spins.
    """

    def __init__(self, command: str) -> None:
        ours, theirs = socket.socketpair()
        shell = os.environ.get("SHELL") or "/bin/sh"
        try:
            self._process = subprocess.Popen(
                (shell, "-c", f"exec {command}"),
                stdin=theirs.fileno(),
                stdout=theirs.fileno(),
                stderr=subprocess.PIPE,
                start_new_session=True,
            )
        except OSError:
            ours.close()
            raise
        finally:
            theirs.close()
        self.socket = ours
        self._said = b""
        # Read all the time: a command that says much, such as `ssh -v`, would block on a full pipe.
        self._listener = threading.Thread(target=self._listen, name="jlr proxy", daemon=True)
        self._listener.start()

    def _listen(self) -> None:
        assert self._process.stderr is not None
        with self._process.stderr as stream:
            while words := os.read(stream.fileno(), _KEPT):
                self._said = (self._said + words)[-_KEPT:]

    def receive_descriptor(self, seconds: float) -> socket.socket:
        """Return the connected socket that the command hands over (ProxyUseFdpass).

        Raises:
            Unreachable: it handed over none.
            TimeoutError: it said nothing within `seconds`.
        """
        self.socket.settimeout(seconds)
        _, descriptors, _, _ = socket.recv_fds(self.socket, 1, 1)
        if not descriptors:
            raise Unreachable(
                "the proxy command handed over no connection",
                hint="`ProxyUseFdpass` wants a command that passes a descriptor, as `nc -F` does",
            )
        return socket.socket(fileno=descriptors[0])

    def complaint(self) -> str:
        """Return the last thing that a dead command said."""
        self._listener.join(_END_SECONDS)
        lines = self._said.decode("utf-8", "replace").strip().splitlines()
        return one_line(" / ".join(lines[-3:]))

    def close(self) -> None:
        """End the command and everything that it started. Never raises."""
        self.socket.close()
        for signal_number in (signal.SIGTERM, signal.SIGKILL):
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self._process.pid, signal_number)
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(_END_SECONDS)
                break
        self._listener.join(_END_SECONDS)
