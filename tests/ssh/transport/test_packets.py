"""AES-GCM packets over a pair of sockets: written by one packetizer, read by another."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import paramiko
import pytest
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from hypothesis import given
from hypothesis import strategies as st
from paramiko import common
from paramiko.packet import NeedRekeyException

from jlremote.ssh.transport.packet_reader import BLOCK, DATA, NONCE, PADDINGS, Keys
from jlremote.ssh.transport.packetizer import Packetizer, send_at_once

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


def test_a_short_compressed_message_may_follow_data(
    pair: tuple[Packetizer, Packetizer],
) -> None:
    sender, reader = pair
    sender.set_outbound_compressor(lambda data: data)
    reader.set_inbound_compressor(lambda data: data)
    taken: list[bytes] = []
    reader.reader.sinks[7] = lambda data: taken.append(bytes(data))
    reader.reader.windows[0] = lambda _: None
    assert send_data(sender, 7, b"one")
    for sent in (90, common.MSG_CHANNEL_WINDOW_ADJUST):
        sender.send_message(paramiko.Message(bytes((sent,))))
        assert reader.read_message()[0] == sent
    assert taken == [b"one"]


def test_nothing_of_a_channel_is_sent_during_a_key_exchange(
    pair: tuple[Packetizer, Packetizer],
) -> None:
    sender, reader = pair
    sender.send_message(paramiko.Message(common.cMSG_KEXINIT))
    assert reader.read_message()[0] == common.MSG_KEXINIT
    assert not send_data(sender, 1, b"data")
    assert not sender.send_payloads([(b"x",)])
    seal(sender)
    assert sender.send_payloads([(bytes((90,)),)])


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


def test_keys_that_are_used_up_ask_for_an_exchange_once() -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        sender, reader = seal(Packetizer(ours)), Packetizer(theirs)
        reader.REKEY_BYTES = 100
        seal(reader)
        reader.reader.sinks[1] = lambda _data: None
        for _ in range(10):
            send_data(sender, 1, bytes(64))
        with pytest.raises(NeedRekeyException):
            reader.read_message()
        sender.send_message(paramiko.Message(bytes((90,))))
        assert reader.read_message()[0] == 90


def test_a_greeting_that_was_sent_ahead_is_not_written_again() -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        packetizer = Packetizer(ours)
        packetizer.already_sent = b"SSH-2.0-x\r\n"
        packetizer.write_all(b"SSH-2.0-x\r\n")
        packetizer.write_all(b"SSH-2.0-x\r\n")
        assert theirs.recv(100) == b"SSH-2.0-x\r\n"


@given(st.integers(0, 5000))
def test_a_padded_packet_is_whole_blocks_with_at_least_four_bytes(payload: int) -> None:
    padding = PADDINGS[payload % BLOCK]
    assert (1 + payload + len(padding)) % BLOCK == 0
    assert 4 <= len(padding) < 4 + BLOCK


@given(st.integers(0, (1 << 64) - 1), st.integers(1, 5))
def test_nonces_count_packets_and_wrap(first: int, count: int) -> None:
    keys = Keys(Engine(), NONCE.pack(b"salt", first), 1 << 30, lambda: None)
    nonces = [keys.nonce(16) for _ in range(count)]
    expected = [NONCE.pack(b"salt", (first + number) % (1 << 64)) for number in range(count)]
    assert nonces == expected
    assert keys.packets == count


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
