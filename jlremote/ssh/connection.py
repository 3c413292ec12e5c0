"""From a destination to a connection that is verified and authenticated: one attempt, whole."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Any

from jlremote.errors import JlrError, LinkLost, NeedsAuthentication, NotSSH, Unreachable
from jlremote.questions import Asker
from jlremote.ssh.config.destination import Destination
from jlremote.ssh.contract import Connection, Output, Stdin, SudoPassword, Terminal
from jlremote.ssh.failures import translated
from jlremote.ssh.login.authentication import log_in
from jlremote.ssh.login.credentials import Credentials, Keychain, Remember
from jlremote.ssh.login.identities import agent_of
from jlremote.ssh.login.user_authentication import UserAuthentication
from jlremote.ssh.route.tcp import ProxyProcess, Way, refusal, step_seconds, straight, through_jump
from jlremote.ssh.sessions.commands import Commands
from jlremote.ssh.sessions.sudo_password import with_password
from jlremote.ssh.transport.algorithms import offer
from jlremote.ssh.transport.transport import GREETING, Transport
from jlremote.ssh.trust.host_keys import look_up, verify
from jlremote.text import printable

_ANSWER_SECONDS = 120.0  # PAM modules may ask a directory, or push to a telephone


class SSHConnection:
    """One authenticated connection, and the ways that it goes over.

    Attributes:
        banner: what the server showed before it let us in, made fit to be shown.
    """

    def __init__(
        self, transport: Transport, ways: Sequence[Way], banner: str, sudo: SudoPassword | None
    ) -> None:
        self.banner = banner
        self._transport = transport
        self._ways = tuple(ways)
        self._sudo = sudo
        self._commands = Commands(transport, sudo)

    @property
    def transport(self) -> Any:
        """The `paramiko.Transport`; only for this room."""
        return self._transport

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
        """Run a script; see `contract.Connection.execute`."""
        return self._commands.execute(
            script,
            output,
            timeout=timeout,
            cancelled=cancelled,
            stdin=stdin,
            hold_stdin=hold_stdin,
            terminal=terminal,
        )

    def with_sudo_password(self, script: bytes) -> bytes:
        """Return it with the password of `sudo`; see `contract.Connection.with_sudo_password`."""
        return with_password(script, self._sudo)

    def run_preemptible(self, script: bytes, output: Output) -> bool:
        """Run a script in a session to spare; see `contract.Connection.run_preemptible`."""
        return self._commands.run_preemptible(script, output)

    def probe(self, timeout: float) -> float:
        """Return the seconds that an answer took; see `contract.Connection.probe`."""
        return self._transport.probe(timeout)

    def refusal(self, address: str, port: int, timeout: float) -> str | None:
        """Return why no connection goes on to there; see `contract.Connection.refusal`."""
        return refusal(self._transport, address, port, timeout)

    def wait_closed(self, timeout: float | None = None) -> bool:
        """Wait until the connection is gone; return whether it is."""
        return self._transport.ended.wait(timeout)

    def close(self) -> None:
        """Close the connection, jump hosts and proxy commands included. Never raises."""
        self._transport.close()
        for way in self._ways:
            way.close()


def connect(
    destination: Destination,
    asker: Asker,
    *,
    agent_socket: str | None,
    secrets: Keychain | None = None,
    remember: Remember = "ask",
    sudo: SudoPassword | None = None,
) -> Connection:
    """Connect, check the host's key, and log in; every jump host first, in the same way.

    Args:
        destination: from `resolve`.
        asker: puts questions to the person; what it raises is passed on unchanged.
        agent_socket: the calling shell's SSH_AUTH_SOCK.
        secrets: the keychain, `None` for none.
        remember: whether secrets that were right are kept.
        sudo: who knows the password that `sudo` there is to be given.

    Raises:
        Unreachable: no connection; the class and the message say why.
        HostKey: the server, or a jump host, could not prove who it is. Nothing was offered to it.
        Authentication: it takes none of our credentials.
        NeedsAuthentication: a person is needed and nobody is there.
    """
    ways: list[Way] = []
    credentials = Credentials(asker, secrets, remember)
    try:
        return _connect(destination, credentials, agent_socket, ways, sudo)
    except BaseException:
        for way in ways:
            way.close()
        raise


def _connect(
    destination: Destination,
    credentials: Credentials,
    agent_socket: str | None,
    ways: list[Way],
    sudo: SudoPassword | None = None,
) -> SSHConnection:
    known = look_up(destination)
    offered = offer(destination.algorithms, known.algorithms(), compression=destination.compression)
    sock = _reach(destination, credentials, agent_socket, ways)
    transport = Transport(sock, offered, has_greeted=_is_straight(destination))
    ways.insert(0, transport)
    _shake_hands(destination, transport, ways)
    verify(destination, transport.host_key_blob, credentials.asker)
    with translated(destination, transport):
        wire = UserAuthentication(transport, destination.user, _ANSWER_SECONDS)
        log_in(wire, destination, credentials, agent_of(destination.login, agent_socket))
    return SSHConnection(transport, ways[1:], printable("".join(wire.banners)), sudo)


def _is_straight(destination: Destination) -> bool:
    return destination.jump is None and destination.proxy_command is None


def _shake_hands(destination: Destination, transport: Transport, ways: Sequence[Way]) -> None:
    try:
        with translated(destination, transport):
            transport.handshake(step_seconds(destination))
    except (NotSSH, LinkLost) as error:
        for way in ways:
            if isinstance(way, ProxyProcess) and (complaint := way.complaint()):
                raise Unreachable(
                    f"the proxy command of `{destination.host}` failed: {complaint}",
                    hint="check `ProxyCommand` in your ssh config",
                ) from error
        raise


def _reach(
    destination: Destination, credentials: Credentials, agent_socket: str | None, ways: list[Way]
) -> Any:
    if destination.jump is not None:
        jump = _connect_jump(destination.jump, credentials, agent_socket)
        ways.insert(0, jump)
        with translated(destination):
            return through_jump(jump.transport, destination.jump, destination)
    with translated(destination):
        if destination.proxy_command is None:
            return straight(destination, GREETING)
        proxy = ProxyProcess(destination.proxy_command)
        ways.insert(0, proxy)
        if destination.proxy_passes_descriptor:
            return proxy.receive_descriptor(step_seconds(destination))
        return proxy.socket


def _connect_jump(
    jump: Destination, credentials: Credentials, agent_socket: str | None
) -> SSHConnection:
    ways: list[Way] = []
    try:
        return _connect(jump, credentials, agent_socket, ways)
    except BaseException as error:
        for way in ways:
            way.close()
        if isinstance(error, JlrError) and not isinstance(error, NeedsAuthentication):
            raise type(error)(f"jump host: {error.message}", hint=error.hint) from error
        raise
