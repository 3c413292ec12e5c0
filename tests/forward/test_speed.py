"""Long and slow lines: windows, probes beside a download, many bytes."""

from __future__ import annotations

import gc
import socket
import weakref
from pathlib import Path
from typing import Any

from jlremote.ssh.channels.tunnel_channel import TunnelChannel
from jlremote.ssh.forward.forwarder import TunnelForward
from tests.bench.tunnel import part
from tests.forward.parts import SwitchedGateway, connect, new_transport, serving
from tests.lab.sshd import SSHServer
from tests.ssh.channels.parts import Handler, Transport

PACKET = 32 << 10
MEGABYTE = 1 << 20


class Eager(Handler):
    """Takes all that comes."""

    def received(self, data: memoryview) -> int:
        return len(data)


class Wire(Transport):
    """A transport without a peer; counts what the far end may send on its channel."""

    def channel(self, round_trip: float = 0.0) -> TunnelChannel:
        loop: Any = self
        made = TunnelChannel(self, Eager(), loop.call)
        made.ask(b"direct-tcpip")
        made.asked -= round_trip
        made._set_remote_channel(made._number, 2 * MEGABYTE, PACKET)
        self.allowed = made._window
        self.sent.clear()
        return made

    def download(self, channel: TunnelChannel, count: int) -> int:
        """Send `count` bytes on `channel`; return the most that it had been allowed meanwhile."""
        most = 0
        for _ in range(0, count, PACKET):
            channel._take(memoryview(bytes(PACKET)))
            self.allowed -= PACKET
            assert self.allowed > 0, "the download stalls"
            self.run()
            self.allowed += sum(int.from_bytes(adjust[5:], "big") for adjust in self.sent)
            self.sent.clear()
            most = max(most, self.allowed)
        return most


def test_a_download_has_the_window_that_its_line_needs() -> None:
    near, far = Wire(), Wire()
    assert near.download(near.channel(), 16 * MEGABYTE) <= 2 * MEGABYTE
    channel = far.channel(round_trip=0.05)
    assert 7 * MEGABYTE < far.download(channel, 64 * MEGABYTE) <= 8 * MEGABYTE


def test_a_connection_that_ended_is_forgotten_with_all_of_its_channels() -> None:
    wire = Wire()
    channel = wire.channel()
    channel.send(memoryview(b"the last that was sent"))
    gone = weakref.ref(wire)
    channel._unlink()
    del channel, wire
    gc.collect()
    assert gone() is None


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
        transport = new_transport(forward_sshd, forward_key, port=port)
        gateway.up(transport, server.target)
        with connect(forward.local_port) as sock:
            read_some(sock, 1 << 20)
            # The window's two megabytes and more are on the way before its own answer.
            assert transport.probe(1.0) > 0.9
        transport.close()
