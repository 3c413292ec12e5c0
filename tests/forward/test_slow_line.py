"""On a slow line a probe's answer waits behind a download, and the line is alive all the same."""

from __future__ import annotations

import socket
from pathlib import Path

from jlremote.ssh.forward.forwarder import TunnelForward
from tests.bench.tunnel import part
from tests.forward.parts import SwitchedGateway, connect, log_in, serving
from tests.lab.sshd import SSHServer

BYTES_PER_SECOND = 1e6


def send_for_ever(sock: socket.socket) -> None:
    while True:
        sock.sendall(bytes(1 << 16))


def read_some(sock: socket.socket, count: int) -> None:
    while count > 0:
        count -= len(sock.recv(count))


def test_a_probe_counts_a_running_download_as_an_answer(
    gateway: SwitchedGateway, forward: TunnelForward, forward_sshd: SSHServer, forward_key: Path
) -> None:
    with (
        part("line", forward_sshd.port, 0.0, BYTES_PER_SECOND) as (port,),
        serving(send_for_ever) as server,
    ):
        transport = log_in(socket.create_connection(("127.0.0.1", port)), forward_key)
        gateway.up(transport, server.target)
        with connect(forward.local_port) as sock:
            read_some(sock, 1 << 20)
            # The window's two megabytes and more are on the way before its own answer.
            assert transport.probe(1.0) > 0.9
        transport.close()
