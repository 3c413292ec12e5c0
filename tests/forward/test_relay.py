"""A server that only its own container reaches, through a relay inside.

Here the relay runs on the host itself: to the protocol it is all the same.
"""

from __future__ import annotations

import json
import os
import shlex
import socket
import ssl
import sys
import threading
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

import psutil
import pytest

from jlremote.place.host.addresses import Target
from jlremote.remote import relay as program
from jlremote.remote import sending
from jlremote.ssh.connection import Connection
from jlremote.ssh.forward.connection_router import WaitLimits
from jlremote.ssh.forward.container_relay import relay_argv
from jlremote.ssh.forward.forwarder import TunnelForward
from tests.forward.parts import (
    MEGABYTE,
    Server,
    SwitchedGateway,
    ask,
    ask_at_once,
    connect,
    echo,
    is_turned_away,
    new_transport,
    relay_processes,
    same,
    serving,
    through_relay,
)
from tests.lab.certificates import certificate
from tests.lab.programs import PATIENCE
from tests.lab.sshd import SSHServer
from tests.link.fakes import Call, until


@pytest.fixture
def up(transport: Any, gateway: SwitchedGateway, echo_server: Server) -> SwitchedGateway:
    gateway.up(transport, through_relay(echo_server))
    return gateway


@pytest.fixture
def by_tls(tmp_path: Path) -> Iterator[Target]:
    """The way to an echo server that speaks TLS, and whose process names its certificate's file."""
    made, file = certificate(), tmp_path / "own.pem"
    file.write_text(made.text + made.key)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(file)

    def echo_by_tls(sock: socket.socket) -> None:
        with context.wrap_socket(sock, server_side=True) as secure:
            echo(secure)

    owner = [sys.executable, "-c", "input()", f"--certfile={file}"]
    with psutil.Popen(owner, stdin=-1) as process, serving(echo_by_tls) as server:
        yield replace(through_relay(server), tls_pid=process.pid)
        process.communicate(b"\n")


def test_bytes_come_back_unchanged_by_tls_from_the_owner_of_the_certificate_only(
    transport: Any, gateway: SwitchedGateway, forward: TunnelForward, by_tls: Target, tmp_path: Path
) -> None:
    gateway.up(transport, by_tls)
    question = os.urandom(9 * MEGABYTE + 17)
    assert same(ask_at_once(forward.local_port, question), question)
    (tmp_path / "own.pem").write_text(certificate().text)
    assert is_turned_away(forward.local_port, b"hello")
    assert "shows another one than its file has" in (forward.failure or "")


def test_the_rest_of_a_piece_of_tls_comes_once_there_is_room(by_tls: Target) -> None:
    with psutil.Popen(relay_argv(by_tls, "ready"), stdin=-1, stdout=-1) as relay:

        def say(kind: int, body: bytes | int) -> None:
            head = program.HEAD.pack(kind, 1, body if isinstance(body, int) else len(body))
            relay.stdin.write(head if isinstance(body, int) else head + body)
            relay.stdin.flush()

        def hear(kind: int) -> int:
            while True:
                heard, _, count = program.HEAD.unpack(relay.stdout.read(9))
                if heard == kind:
                    return int(count)

        assert relay.stdout.readline() == b"ready\n"
        relay.stdin.write(sending.packed("jlremote.remote.tls_relay"))
        say(program.OPEN, json.dumps((2, "127.0.0.1", by_tls.port)).encode())
        say(program.DATA, b"hello")
        assert relay.stdout.read(hear(program.DATA)) == b"he"
        say(program.CREDIT, 9)
        assert relay.stdout.read(hear(program.DATA)) == b"llo"
        relay.communicate()


def test_a_slow_reader_neither_blocks_the_others_nor_fills_memory(
    transport: Any, gateway: SwitchedGateway, forward: TunnelForward
) -> None:
    sent: list[int] = []

    def send_or_echo(sock: socket.socket) -> None:
        if sock.recv(1) == b"q":
            sock.sendall(b"quick")
            return
        block = b"z" * MEGABYTE
        while True:
            sock.sendall(block)
            sent.append(MEGABYTE)

    with serving(send_or_echo) as server:
        gateway.up(transport, through_relay(server))
        stuck = [connect(forward.local_port) for _ in range(5)]
        for sock in stuck:
            sock.sendall(b"s")
            assert sock.recv(1) == b"z"
        assert ask(forward.local_port, b"q") == b"quick"
        (relay,) = relay_processes(server)
        assert relay.memory_info().rss < 40 * MEGABYTE
        for sock in stuck:
            sock.close()


def test_a_relay_that_dies_is_started_again(
    up: SwitchedGateway, forward: TunnelForward, echo_server: Server
) -> None:
    with connect(forward.local_port) as cut:
        cut.sendall(b"x")
        assert cut.recv(1) == b"x"
        (first,) = relay_processes(echo_server)
        first.kill()
        with pytest.raises(ConnectionResetError):
            cut.recv(1)
    assert ask(forward.local_port, b"again") == b"again"
    (second,) = relay_processes(echo_server)
    assert second.pid != first.pid


def test_a_relay_that_cannot_start_reports_the_reason(
    transport: Any, gateway: SwitchedGateway, forward: TunnelForward, echo_server: Server
) -> None:
    gateway.up(transport, through_relay(echo_server, "/no/such/python"))
    assert is_turned_away(forward.local_port, b"hello")
    assert "/no/such/python" in (forward.failure or "")


def test_noise_of_login_files_is_skipped(
    transport: Any, gateway: SwitchedGateway, forward: TunnelForward, echo_server: Server
) -> None:
    noisy = ("sh", "-c", 'echo "Welcome\nto `lab`"; exec "$0" "$@"', sys.executable)
    gateway.up(transport, through_relay(echo_server, *noisy))
    assert ask(forward.local_port, b"hello") == b"hello"


@pytest.mark.parametrize("shell", ["/bin/dash", "/bin/bash"])
def test_no_shell_reads_the_first_frames(shell: str, echo_server: Server) -> None:
    """The line is read, and what follows the marker belongs to the relay."""
    if not Path(shell).exists():
        pytest.skip(f"{shell} is not installed")
    argv = relay_argv(through_relay(echo_server), "ready")
    process = psutil.Popen([shell, "-s"], stdin=-1, stdout=-1)
    process.stdin.write(f"exec {shlex.join(argv)}\n".encode())
    process.stdin.flush()
    assert process.stdout.readline() == b"ready\n"
    process.stdin.write(sending.packed("jlremote.remote.relay"))
    opening = json.dumps((1, "127.0.0.1", echo_server.port)).encode()
    process.stdin.write(program.HEAD.pack(program.OPEN, 1, len(opening)) + opening)
    process.stdin.flush()
    head = process.stdout.read(program.HEAD.size)
    assert program.HEAD.unpack(head) == (program.OPENED, 1, 0)
    process.communicate()
    assert process.returncode == 0


def test_the_relay_ends_with_the_forward(
    transport: Any, gateway: SwitchedGateway, echo_server: Server
) -> None:
    gateway.up(transport, through_relay(echo_server))
    forward = TunnelForward(0, gateway)
    forward.start()
    assert ask(forward.local_port, b"hello") == b"hello"
    assert len(relay_processes(echo_server)) == 1
    forward.stop()
    until(lambda: not relay_processes(echo_server), "the end of the relay")


@pytest.mark.usefixtures("forward_sshd")
def test_a_relay_waits_for_commands_that_have_the_last_sessions(
    gateway: SwitchedGateway, forward_key: Path, echo_server: Server
) -> None:
    options = ("PermitRootLogin yes", "MaxSessions 2")
    begun = threading.Semaphore(0)
    with ExitStack() as stack:
        sshd = stack.enter_context(SSHServer(forward_key.with_suffix(".pub"), options=options))
        transport = new_transport(sshd, forward_key)
        stack.callback(transport.close)
        gateway.up(transport, Target("127.0.0.1", echo_server.port, (sys.executable,)))

        def run() -> int:
            script = b"echo up; sleep 2"
            return Connection(transport).execute(
                script, lambda *_: begun.release(), timeout=PATIENCE
            )

        running = [Call(run) for _ in range(2)]
        assert all(begun.acquire(timeout=PATIENCE) for _ in running)
        forward = TunnelForward(0, gateway, limits=WaitLimits(connection=10))
        stack.callback(forward.stop)
        forward.start()
        assert ask(forward.local_port, b"hello") == b"hello"
        assert [one.result() for one in running] == [0, 0]
