"""AES-GCM packets over a pair of sockets: written by one packetizer, read by another."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import paramiko
import pytest
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from paramiko import common

from jlremote.ssh.transport.packetizer import BLOCK, DATA, Packetizer, send_at_once

IV = bytes(range(12))


class Engine:
    """AES-GCM as paramiko's packetizer calls it."""

    def __init__(self) -> None:
        self._cipher = AESGCM(bytes(16))
        self.encrypt = self._cipher.encrypt
        self.decrypt = self._cipher.decrypt


def seal(packetizer: Packetizer) -> Packetizer:
    """Give a packetizer keys in both directions."""
    common_arguments: dict[str, Any] = {
        "block_engine": Engine(),
        "block_size": BLOCK,
        "mac_engine": None,
        "mac_size": 16,
        "mac_key": b"",
        "aead": True,
    }
    packetizer.set_outbound_cipher(**common_arguments, iv_out=IV)
    packetizer.set_inbound_cipher(**common_arguments, iv_in=IV)
    return packetizer


def send_data(packetizer: Packetizer, number: int, data: bytes) -> bool:
    head = DATA.pack(0, common.MSG_CHANNEL_DATA, number, len(data))[1:]
    return packetizer.send_payloads([(head, data)])


@pytest.fixture
def pair() -> Iterator[tuple[Packetizer, Packetizer]]:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        yield seal(Packetizer(ours)), seal(Packetizer(theirs))


def test_a_changed_packet_is_an_error(pair: tuple[Packetizer, Packetizer]) -> None:
    sender, reader = pair
    sender._socket.sendall((16).to_bytes(4, "big") + bytes(32))
    with pytest.raises(paramiko.SSHException, match="changed on the way"):
        reader.read_message()


@pytest.mark.parametrize("size", [0, 15, 17, 1 << 20])
def test_an_impossible_length_is_an_error(size: int, pair: tuple[Packetizer, Packetizer]) -> None:
    sender, reader = pair
    sender._socket.sendall(size.to_bytes(4, "big") + bytes(64))
    with pytest.raises(paramiko.SSHException, match=f"claims to have {size} bytes"):
        reader.read_message()


def test_the_end_of_the_connection_is_an_error(pair: tuple[Packetizer, Packetizer]) -> None:
    sender, reader = pair
    sender.close()
    with pytest.raises(EOFError):
        reader.read_message()
    with pytest.raises(EOFError):
        send_data(reader, 1, b"x")


def test_little_waits_in_the_socket_for_a_line_that_is_full() -> None:
    """A keystroke goes behind it; the system would take 4 MB."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 32 << 10)
        with socket.create_connection(listener.getsockname()) as ours, listener.accept()[0]:
            send_at_once(ours)
            ours.setblocking(False)
            taken = 0
            with suppress(BlockingIOError):
                while True:
                    taken += ours.send(bytes(32 << 10))
            assert taken < 1 << 20
