"""A hostile SSH server: paramiko's server side, which sends whatever message a test likes."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import paramiko

from jlremote.ssh.login.user_authentication import UserAuthentication
from jlremote.ssh.transport.algorithms import Offer
from jlremote.ssh.transport.transport import Transport

SECONDS = 10.0


class Account(paramiko.ServerInterface):  # type: ignore[misc]  # paramiko has no types
    """Lets everybody in, and notes the secrets that it was sent."""

    def __init__(self) -> None:
        self.secrets: list[str] = []

    def get_allowed_auths(self, username: str) -> str:
        return "password,keyboard-interactive"

    def check_auth_none(self, username: str) -> int:
        return int(paramiko.AUTH_SUCCESSFUL if username == "open" else paramiko.AUTH_FAILED)

    def check_auth_password(self, username: str, password: str) -> int:
        self.secrets.append(password)
        return int(paramiko.AUTH_SUCCESSFUL)

    def check_auth_interactive(self, username: str, submethods: str) -> Any:
        return paramiko.InteractiveQuery("", "", ("Password: ", False))

    def check_auth_interactive_response(self, responses: list[str]) -> int:
        self.secrets += responses
        return int(paramiko.AUTH_SUCCESSFUL)

    def check_channel_request(self, kind: str, chanid: int) -> int:
        return int(paramiko.OPEN_SUCCEEDED)

    def check_channel_exec_request(self, channel: Any, command: bytes) -> bool:
        return True


@dataclass
class HostileServer:
    """A server on loopback with one host key; it serves one connection after the other."""

    key: Any = field(default_factory=paramiko.ECDSAKey.generate)
    account: Account = field(default_factory=Account)
    port: int = 0

    @contextmanager
    def listening(self) -> Iterator[None]:
        listener = socket.create_server(("127.0.0.1", 0))
        self.port = listener.getsockname()[1]
        serving = threading.Thread(target=self._serve, args=(listener,), daemon=True)
        serving.start()
        try:
            yield
        finally:
            listener.shutdown(socket.SHUT_RDWR)
            serving.join(SECONDS)
            listener.close()

    def _serve(self, listener: socket.socket) -> None:
        while True:
            try:
                sock, _ = listener.accept()
            except OSError:
                return
            with sock:
                serve(sock, self.key, self.account).join(SECONDS)


def serve(sock: socket.socket, key: Any, account: Account) -> Any:
    """Return the server's side of a connection, a thread that runs."""
    server = paramiko.Transport(sock)
    server.add_server_key(key)
    server.start_server(event=threading.Event(), server=account)
    return server


@contextmanager
def connected(offer: Offer | None = None) -> Iterator[tuple[Transport, Any]]:
    """Yield both ends of a connection that is logged in: ours, and the hostile server's."""
    ours, theirs = socket.socketpair()
    with ours, theirs:
        server = serve(theirs, paramiko.ECDSAKey.generate(), Account())
        client = Transport(ours, offer or Offer())
        try:
            client.handshake(SECONDS)
            wire = UserAuthentication(client, "open", SECONDS)
            assert wire.begin().success
            yield client, server
        finally:
            client.close()
            server.close()
            server.join(SECONDS)
            client.join(SECONDS)
