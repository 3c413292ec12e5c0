"""sshd counts commands, relays and mounts together, and so do we."""

from __future__ import annotations

import sys
import threading
from contextlib import ExitStack
from pathlib import Path

import pytest

from jlremote.place.host.addresses import Target
from jlremote.ssh.connection import Connection
from jlremote.ssh.forward.connection_router import WaitLimits
from jlremote.ssh.forward.forwarder import TunnelForward
from tests.forward.parts import Server, SwitchedGateway, ask, new_transport
from tests.lab.programs import PATIENCE
from tests.lab.sshd import SSHServer
from tests.link.fakes import Call


def started(gateway: SwitchedGateway, stack: ExitStack) -> TunnelForward:
    forward = TunnelForward(0, gateway, limits=WaitLimits(connection=10))
    stack.callback(forward.stop)
    forward.start()
    return forward


def is_served(port: int) -> bool:
    try:
        return ask(port, b"hello") == b"hello"
    except OSError:  # closed, and so early that not even asking was possible
        return False


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
        assert is_served(started(gateway, stack).local_port)
        assert [one.result() for one in running] == [0, 0]
