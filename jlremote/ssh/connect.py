"""A connection to a host: how it is made (jump hosts first), and commands over it."""

from __future__ import annotations

import contextlib
import queue
import socket
import sys
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

from jlremote.errors import Busy, JlrError, LinkLost, NeedsAuthentication, NotSSH, Unreachable
from jlremote.place.host.framing import FromMarker, ended_early, new_marker
from jlremote.questions import Asker
from jlremote.ssh.channels.channel_registry import ChannelRegistry
from jlremote.ssh.channels.event_loop import EventLoop
from jlremote.ssh.channels.session_channel import ScriptChannel, StdinPieces
from jlremote.ssh.channels.shell_session import MENDING, Deadline, ShellSession
from jlremote.ssh.channels.typed_text import answering_sudo, with_password
from jlremote.ssh.config.destination import Destination
from jlremote.ssh.failures import explain_channel, translated
from jlremote.ssh.forward.place_streams import PlaceStreams
from jlremote.ssh.interfaces import NOTHING, Output, Stdin, Stream, SudoPassword, Terminal
from jlremote.ssh.login.credentials import Credentials, Keychain, Remember
from jlremote.ssh.login.identities import agent_of
from jlremote.ssh.login.methods import log_in
from jlremote.ssh.login.user_authentication import UserAuthentication
from jlremote.ssh.transport.algorithms import offer
from jlremote.ssh.transport.server_socket import ProxyProcess, connect_tcp
from jlremote.ssh.transport.transport import GREETING, PROHIBITED, Transport
from jlremote.ssh.trust.host_keys import look_up, verify
from jlremote.ssh.wire_format import DIRECT_TCPIP, STREAMLOCAL, direct_streamlocal, direct_tcpip
from jlremote.text import one_line

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
) -> SSHConnection:
    """Connect, verify the host's key, and log in; every jump host first, in the same way.

    `agent_socket` is the calling shell's SSH_AUTH_SOCK. What `asker` raises is passed on unchanged.
    `head` returns what each script begins with.

    Raises:
        Unreachable: no connection; the class and the message say why.
        HostKey: the server, or a jump host, could not prove its identity. Nothing was offered.
        Authentication: the server takes none of our credentials.
        NeedsAuthentication: a person must answer and cannot be asked.
    """
    connection = _connect(destination, Credentials(asker, secrets, remember), agent_socket)
    return replace(connection, _sudo=sudo, _head=head)


def _connect(
    destination: Destination, credentials: Credentials, agent_socket: str | None
) -> SSHConnection:
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
            log_in(wire, destination, credentials, agent_of(destination.login, agent_socket))
        return SSHConnection(transport, route.pop_all())
    raise AssertionError("an exit stack swallowed an error")


def _handshake(destination: Destination, transport: Transport, proxy: ProxyProcess | None) -> None:
    try:
        with translated(destination, transport):
            transport.handshake(destination.step_seconds)
    except (NotSSH, LinkLost) as error:
        if proxy is not None and (complaint := proxy.complaint()):
            raise Unreachable(
                f"the proxy command of `{destination.host}` failed: {complaint}",
                hint="check `ProxyCommand` in your ssh config",
            ) from error
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
        jump = _connect_jump(destination.jump, credentials, agent_socket)
        route.callback(jump.close)
        with translated(destination):
            return _through_jump(jump, destination, loop, route), None
    with translated(destination):
        if destination.proxy_command is None:
            return connect_tcp(destination, GREETING), None
        if sys.platform == "win32":
            raise Unreachable(
                "`ProxyCommand` does not work on Windows",
                hint="use `ProxyJump`, or run `jlr` in WSL",
            )
        proxy = ProxyProcess(destination.proxy_command, destination.proxy_folder)
        route.callback(proxy.close)
        if destination.proxy_passes_descriptor:
            return proxy.receive_descriptor(destination.step_seconds), proxy
        return proxy.socket, proxy


def _connect_jump(
    jump: Destination, credentials: Credentials, agent_socket: str | None
) -> SSHConnection:
    try:
        return _connect(jump, credentials, agent_socket)
    except NeedsAuthentication:
        raise
    except JlrError as error:
        raise type(error)(f"jump host: {error.message}", hint=error.hint) from error


def _through_jump(
    jump: SSHConnection, destination: Destination, loop: EventLoop, route: contextlib.ExitStack
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


@dataclass(eq=False, repr=False)
class SSHConnection:
    """One connection to a host; follows `interfaces.Connection`."""

    transport: Transport
    _route: contextlib.ExitStack = field(default_factory=contextlib.ExitStack)
    _sudo: SudoPassword | None = None
    _head: Callable[[], bytes] = bytes  # what each script begins with
    _has_shell: bool = False

    def __post_init__(self) -> None:
        self._slots = ChannelRegistry.of(self.transport).slots

    @property
    def description(self) -> str:
        return one_line(self.transport.description)

    @property
    def reason(self) -> str:
        return one_line(self.transport.reason)

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
        deadline = Deadline(timeout, cancelled)
        if stdin is not None:
            self._check_shell(deadline)
        script, stdin, output = answering_sudo(
            script, stdin, output, self._sudo, in_terminal=terminal is not None
        )
        if timeout is None and not self._slots.keep(deadline):
            raise Busy(self._slots.too_many(), hint="close one of them and try again")
        try:
            session = ShellSession(self.transport, deadline, terminal, variables)
            return session.run(self._begun(script), output, stdin, hold_stdin=hold_stdin)
        finally:
            self._slots.end(deadline)

    def run_preemptible(self, script: bytes, output: Output) -> bool:
        pieces, preempted = StdinPieces(), threading.Event()
        pieces.open()

        def preempt() -> None:
            preempted.set()
            pieces.add(b"")

        script, stdin, output = answering_sudo(
            script, pieces, output, self._sudo, in_terminal=False
        )
        session = ShellSession(self.transport, Deadline(None, None), None)
        self._slots.lend(session, preempt)
        try:
            session.run(self._begun(script), output, stdin, hold_stdin=False)
        finally:
            self._slots.end(session)
        return not preempted.is_set()

    def with_sudo_password(self, script: bytes) -> bytes:
        return self._begun(with_password(script, self._sudo))

    def _begun(self, script: bytes) -> bytes:
        return MENDING + self._head() + script

    def probe(self, timeout: float) -> float:
        return self.transport.probe(timeout)

    def refusal(self, address: str, port: int, timeout: float) -> str | None:
        refusal = self._refusal(DIRECT_TCPIP, direct_tcpip(address, port), timeout)
        return refusal if refusal is not None and refusal.startswith(PROHIBITED) else None

    def reaches(self, path: str, timeout: float) -> bool:
        return self._refusal(STREAMLOCAL, direct_streamlocal(path), timeout) is None

    def _refusal(self, kind: bytes, details: bytes, timeout: float) -> str | None:
        channel = ScriptChannel(self.transport)
        channel.ask(kind, details)
        is_answered = channel.answered.wait(timeout)
        channel.close()
        if not is_answered or (channel.refusal is None and not channel.is_granted):
            raise LinkLost("the server did not say whether it permits forwarding")
        return None if channel.refusal is None else one_line(channel.refusal)

    def wait_closed(self, timeout: float | None = None) -> bool:
        return self.transport.ended.wait(timeout)

    def close(self) -> None:
        self.transport.close()
        self._route.close()

    def _check_shell(self, deadline: Deadline) -> None:
        """Check once that scripts are read by `sh`.

        Startup files may have put another shell in its place, and that may wait for the end of a
        stdin which is kept open for a command's input: `NoShell`.
        """
        if self._has_shell:
            return
        marker = new_marker()
        streams = {"stdout": FromMarker(marker), "stderr": FromMarker(marker)}

        def hear(stream: Stream, data: bytes) -> None:
            streams[stream].take(data)

        script = self._begun(f"echo {marker}\n".encode())
        ShellSession(self.transport, deadline, None).run(script, hear, None, hold_stdin=False)
        self._has_shell = streams["stdout"].begun
        if not self._has_shell:
            raise ended_early(*(stream.noise for stream in streams.values()))
