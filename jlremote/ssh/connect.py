"""How a connection to a host is made: jump hosts first, then the host's key, then the login."""

from __future__ import annotations

import contextlib
import queue
import socket
from collections.abc import Callable
from dataclasses import replace

from jlremote.errors import JlrError, LinkLost, NeedsAuthentication, NotSSH, Unreachable
from jlremote.questions import Asker
from jlremote.ssh.channels.event_loop import EventLoop
from jlremote.ssh.channels.session_channel import SudoPassword
from jlremote.ssh.config.destination import Destination
from jlremote.ssh.connection import Connection
from jlremote.ssh.failures import explain_channel, translated
from jlremote.ssh.forward.place_streams import PlaceStreams
from jlremote.ssh.login.credentials import Credentials, Keychain, Remember
from jlremote.ssh.login.identities import agent_of
from jlremote.ssh.login.methods import Login
from jlremote.ssh.login.user_authentication import UserAuthentication
from jlremote.ssh.transport.algorithms import offer
from jlremote.ssh.transport.server_socket import ProxyProcess, connect_tcp
from jlremote.ssh.transport.transport import GREETING, Transport
from jlremote.ssh.trust.host_keys import look_up, verify

_ANSWER_SECONDS = 120.0  # PAM modules may ask a directory, or push to a telephone


def connect(
    destination: Destination,
    asker: Asker,
    *,
    agent_socket: str | None,
    secrets: Keychain | None = None,
    remember: Remember = "ask",
    sudo: SudoPassword | None = None,
    head: Callable[[], bytes] = bytes,
) -> Connection:
    """Connect, verify the host's key, and log in; every jump host first, in the same way.

    `agent_socket` is the calling shell's SSH_AUTH_SOCK. What `asker` raises is passed on unchanged.
    `head` returns what each script begins with. Raise `Unreachable` if there is no connection,
    `HostKey` if the server or a jump host could not prove its identity (then nothing was offered),
    `Authentication` if the server takes none of our credentials, `NeedsAuthentication` if a person
    must answer and cannot be asked.
    """
    connection = _connect(destination, Credentials(asker, secrets, remember), agent_socket)
    return replace(connection, _sudo=sudo, _head=head)


def _connect(
    destination: Destination, credentials: Credentials, agent_socket: str | None
) -> Connection:
    known = look_up(destination)
    offered = offer(destination.algorithms, known.algorithms(), compression=destination.compression)
    with contextlib.ExitStack() as route:
        sock, proxy = _reach(destination, credentials, agent_socket, route)
        is_direct = destination.jump is None and destination.proxy_command is None
        transport = Transport(sock, offered, has_greeted=is_direct)
        route.callback(transport.close)
        _handshake(destination, transport, proxy)
        address = str(sock.getpeername()[0]) if is_direct else ""
        verify(destination, transport.host_key_blob, credentials.asker, address)
        with translated(destination, transport):
            wire = UserAuthentication(transport, destination.user, _ANSWER_SECONDS)
            agent = agent_of(destination.login, agent_socket)
            Login(wire, destination, credentials, agent).run()
        return Connection(transport, route.pop_all())
    raise AssertionError("an exit stack swallowed an error")


def _handshake(destination: Destination, transport: Transport, proxy: ProxyProcess | None) -> None:
    try:
        with translated(destination, transport):
            transport.handshake(destination.step_seconds)
    except (NotSSH, LinkLost) as error:
        if proxy is not None and (complaint := proxy.complaint()):
            message = f"the proxy command of `{destination.host}` failed: {complaint}"
            hint = "check `ProxyCommand` in your ssh config"
            raise Unreachable(message, hint=hint) from error
        raise


def _reach(
    destination: Destination,
    credentials: Credentials,
    agent_socket: str | None,
    route: contextlib.ExitStack,
) -> tuple[socket.socket, ProxyProcess | None]:
    if destination.jump is not None:
        loop = EventLoop()
        loop.start_thread("jlr jump")
        route.callback(loop.end_thread)
        try:
            jump = _connect(destination.jump, credentials, agent_socket)
        except NeedsAuthentication:
            raise
        except JlrError as error:
            raise type(error)(f"jump host: {error.message}", hint=error.hint) from error
        route.callback(jump.close)
        with translated(destination):
            return _through_jump(jump, destination, loop, route), None
    with translated(destination):
        if destination.proxy_command is None:
            return connect_tcp(destination, GREETING), None
        proxy = ProxyProcess(destination.proxy_command, destination.proxy_folder)
        route.callback(proxy.close)
        if destination.proxy_passes_descriptor:
            return proxy.receive_descriptor(destination.step_seconds), proxy
        return proxy.socket, proxy


def _through_jump(
    jump: Connection, destination: Destination, loop: EventLoop, route: contextlib.ExitStack
) -> socket.socket:
    near, far = socket.socketpair()
    route.callback(near.close)
    answers: queue.SimpleQueue[str | None] = queue.SimpleQueue()
    streams = PlaceStreams((), loop, direct=True)
    streams.connect(jump, (destination.hostname, destination.port), far, answers.put)
    try:
        refusal = answers.get(timeout=destination.step_seconds)
    except queue.Empty:
        raise TimeoutError from None
    if refusal is not None:
        assert destination.jump is not None
        raise explain_channel(refusal, destination.place, destination.jump.place)
    return near
