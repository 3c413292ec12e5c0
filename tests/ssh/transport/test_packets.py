"""AES-GCM packets over a pair of sockets: written by one packetizer, read by another."""

from __future__ import annotations

import socket
import struct
import threading
from collections.abc import Callable, Iterator
from typing import Any

import paramiko
import pytest
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from hypothesis import given
from hypothesis import strategies as st
from paramiko import common
from paramiko.packet import NeedRekeyException

from jlremote.ssh.transport.packet_format import BLOCK, DATA, LENGTH, NONCE, PADDINGS, TAG, Keys
from jlremote.ssh.transport.packetizer import Packetizer

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


@pytest.fixture
def pair() -> Iterator[tuple[Packetizer, Packetizer]]:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        yield seal(Packetizer(ours)), seal(Packetizer(theirs))


def test_a_message_arrives_with_its_kind_and_number(pair: tuple[Packetizer, Packetizer]) -> None:
    sender, reader = pair
    for count in range(3):
        sender.send_message(paramiko.Message(bytes((90,)) + b"x" * count))
        kind, message = reader.read_message()
        assert (kind, message.asbytes(), message.seqno) == (90, b"x" * count, count)
    assert reader.packets_read == 3


def test_data_goes_to_the_sink_of_its_channel_and_other_packets_do_not(
    pair: tuple[Packetizer, Packetizer],
) -> None:
    sender, reader = pair
    taken: list[bytes] = []
    reader.reader.sinks[7] = lambda data: taken.append(bytes(data))
    assert sender.send_data(7, b"to the sink")
    assert sender.send_data(8, b"no sink")
    kind, message = reader.read_message()
    assert taken == [b"to the sink"]
    assert kind == common.MSG_CHANNEL_DATA
    assert (message.get_int(), message.get_binary()) == (8, b"no sink")


def test_more_room_is_told_to_its_channel_and_else_to_the_transport(
    pair: tuple[Packetizer, Packetizer],
) -> None:
    sender, reader = pair
    told: list[int] = []
    reader.reader.windows[7] = told.append
    kind = common.MSG_CHANNEL_WINDOW_ADJUST
    for number, more in ((7, 5), (7, 0xFFFFFFFF), (8, 6)):
        sender.send_message(paramiko.Message(struct.pack(">BII", kind, number, more)))
    kind, message = reader.read_message()
    assert told == [5, 0xFFFFFFFF]
    assert (kind, message.get_int(), message.get_int()) == (kind, 8, 6)
    assert reader.packets_read == 3


def test_packets_that_may_wait_are_read_together_once(
    pair: tuple[Packetizer, Packetizer], monkeypatch: pytest.MonkeyPatch
) -> None:
    sender, reader = pair
    taken: list[bytes] = []

    def sink(data: memoryview) -> None:
        taken.append(bytes(data))
        reader.reader.is_unhurried = len(taken) == 1
        assert sender.send_data(7 if len(taken) < 3 else 8, b"next")

    def nap(seconds: float) -> None:
        assert taken == [b"first"]
        assert sender.send_data(7, b"beside it")

    monkeypatch.setattr("jlremote.ssh.transport.packet_reader.time.sleep", nap)
    reader.reader.sinks[7] = sink
    assert sender.send_data(7, b"first")
    reader.read_message()
    assert taken == [b"first", b"next", b"beside it", b"next"]


def test_small_packets_that_came_together_are_passed_on_together(
    pair: tuple[Packetizer, Packetizer],
) -> None:
    sender, reader = pair
    taken: list[tuple[int, bytes]] = []
    reader.reader.sinks[7] = lambda data: taken.append((7, bytes(data)))
    reader.reader.sinks[8] = lambda data: taken.append((8, bytes(data)))
    reader.reader.joined.add(7)
    large = bytes(20_000)
    for number, data in (
        (7, b"1"), (7, b"2"), (8, b"3"), (8, b"4"), (7, large), (7, b"5"), (7, b"6"), (9, b"7")
    ):  # fmt: skip
        assert sender.send_data(number, data)
    kind, message = reader.read_message()
    assert (kind, message.get_int()) == (common.MSG_CHANNEL_DATA, 9)
    assert message.seqno == 7
    assert taken == [(7, b"12"), (8, b"3"), (8, b"4"), (7, large), (7, b"56")]


def test_a_short_compressed_message_may_follow_small_packets(
    pair: tuple[Packetizer, Packetizer],
) -> None:
    sender, reader = pair
    sender.set_outbound_compressor(lambda data: data)
    reader.set_inbound_compressor(lambda data: data)
    taken: list[bytes] = []
    reader.reader.sinks[7] = lambda data: taken.append(bytes(data))
    reader.reader.joined.add(7)
    reader.reader.windows[0] = lambda _: None
    assert sender.send_data(7, b"one")
    for sent in (90, common.MSG_CHANNEL_WINDOW_ADJUST):
        sender.send_message(paramiko.Message(bytes((sent,))))
        assert reader.read_message()[0] == sent
    assert taken == [b"one"]


def test_a_packet_is_handled_before_another_thread_may_read(
    pair: tuple[Packetizer, Packetizer],
) -> None:
    sender, reader = pair
    offers: list[int] = []

    def sink(data: memoryview) -> None:
        assert bytes(data) == b"onetwo"
        reader.reader.want(lambda: offers.append(1))

    reader.reader.sinks[7] = sink
    reader.reader.joined.add(7)
    for data in (b"one", b"two"):
        assert sender.send_data(7, data)
    sender.send_message(paramiko.Message(bytes((90,))))
    assert reader.read_message()[0] == 90
    assert not offers
    sender.send_message(paramiko.Message(bytes((91,))))
    assert reader.read_message()[0] == 91
    assert offers


def test_several_payloads_are_written_at_once_and_in_order(
    pair: tuple[Packetizer, Packetizer],
) -> None:
    sender, reader = pair
    taken: list[bytes] = []
    reader.reader.sinks[1] = lambda data: taken.append(bytes(data))
    bodies = [bytes((count % 256,)) * (count % 50) for count in range(700)]
    head = DATA.pack(0, common.MSG_CHANNEL_DATA, 1, 0)[1:6]
    assert sender.send_payloads([(head, len(body).to_bytes(4, "big"), body) for body in bodies])
    sender.send_message(paramiko.Message(bytes((90,))))
    assert reader.read_message()[0] == 90
    assert taken == bodies


def test_small_messages_of_one_time_are_written_together_and_before_what_follows(
    pair: tuple[Packetizer, Packetizer],
) -> None:
    sender, reader = pair
    taken: list[bytes] = []
    reader.reader.sinks[1] = lambda data: taken.append(bytes(data))
    later: list[Callable[[], None]] = []
    for data in (b"one", b"two"):
        assert sender.send_data(1, data, later)
    assert len(later) == 1
    reader.reader.socket.setblocking(False)
    with pytest.raises(BlockingIOError):
        reader.reader.socket.recv(1)
    reader.reader.socket.setblocking(True)
    large = bytes(20_000)
    assert sender.send_data(1, large, later)
    assert sender.send_data(1, b"three", later)
    assert sender.send_data(1, b"four")
    assert sender.send_data(1, b"five", later)
    for action in later:
        action()
    sender.send_message(paramiko.Message(bytes((90,))))
    assert reader.read_message()[0] == 90
    assert taken == [b"one", b"two", large, b"three", b"four", b"five"]


def test_arrived_packets_are_passed_on_together_up_to_one_for_the_transport(
    pair: tuple[Packetizer, Packetizer],
) -> None:
    sender, reader = pair
    taken: list[tuple[bytes, int]] = []
    reader.reader.sinks[7] = lambda data: taken.append((bytes(data), reader.packets_read))
    for data in (b"one", b"two"):
        assert sender.send_data(7, data)
    sender.send_message(paramiko.Message(bytes((90,))))
    assert sender.send_data(7, b"behind it")
    assert not reader.reader.poll()
    assert taken == [(b"one", 3), (b"two", 3)]
    sender.send_message(paramiko.Message(bytes((91,))))
    assert [reader.read_message()[0] for _ in range(2)] == [90, 91]
    assert taken[2:] == [(b"behind it", 4)]


def test_what_came_before_a_mangled_packet_is_passed_on(
    pair: tuple[Packetizer, Packetizer],
) -> None:
    sender, reader = pair
    taken: list[bytes] = []
    reader.reader.sinks[7] = lambda data: taken.append(bytes(data))
    assert sender.send_data(7, b"whole")
    sender._socket.sendall(LENGTH.pack(BLOCK) + bytes(BLOCK + TAG))
    assert not reader.reader.poll()
    assert taken == [b"whole"]
    with pytest.raises(paramiko.SSHException, match="changed on the way"):
        reader.read_message()


def test_what_came_before_a_mangled_packet_is_passed_on_without_polling(
    pair: tuple[Packetizer, Packetizer],
) -> None:
    sender, reader = pair
    taken: list[bytes] = []
    reader.reader.sinks[7] = lambda data: taken.append(bytes(data))
    reader.reader.joined.add(7)
    for data in (b"one", b"two"):
        assert sender.send_data(7, data)
    sender._socket.sendall(LENGTH.pack(BLOCK) + bytes(BLOCK + TAG))
    with pytest.raises(paramiko.SSHException, match="changed on the way"):
        reader.read_message()
    assert taken == [b"onetwo"]


def test_what_is_sent_without_waiting_is_held_where_the_socket_is_full(
    pair: tuple[Packetizer, Packetizer],
) -> None:
    sender, reader = pair
    taken: list[bytes] = []
    reader.reader.sinks[1] = lambda data: taken.append(bytes(data))
    head = DATA.pack(0, common.MSG_CHANNEL_DATA, 1, 30_000)[1:]
    bodies = [bytes((count,)) * 30_000 for count in range(200)]
    sent = 0
    while sender.send_payloads_now([(head, body) for body in bodies[sent : sent + 2]]):
        sent += 2
    assert 0 < sent < 198
    assert sender.send_payloads_now([(head, bodies[0])]) is None
    sent += 2

    def go_on() -> None:
        sender.write_held()
        assert sender.send_payloads_now([]) is True
        assert sender.send_payloads([(head, body) for body in bodies[sent:]])
        sender.send_message(paramiko.Message(bytes((90,))))

    writing = threading.Thread(target=go_on)
    writing.start()
    assert reader.read_message()[0] == 90
    writing.join()
    assert taken == bodies


def test_nothing_is_sent_without_waiting_while_another_thread_sends(
    pair: tuple[Packetizer, Packetizer],
) -> None:
    sender, _ = pair
    with sender._sending:
        assert sender.send_payloads_now([(b"Z",)]) is None
    sender._exchanging = True
    assert sender.send_payloads_now([(b"Z",)]) is None


def test_nothing_of_a_channel_is_sent_during_a_key_exchange(
    pair: tuple[Packetizer, Packetizer],
) -> None:
    sender, reader = pair
    sender.send_message(paramiko.Message(common.cMSG_KEXINIT))
    assert reader.read_message()[0] == common.MSG_KEXINIT
    assert not sender.send_data(1, b"data")
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
        reader.send_data(1, b"x")


def test_keys_that_are_used_up_ask_for_an_exchange_once() -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        sender, reader = seal(Packetizer(ours)), Packetizer(theirs)
        reader.REKEY_BYTES = 100
        seal(reader)
        reader.reader.sinks[1] = lambda _data: None
        for _ in range(10):
            sender.send_data(1, bytes(64))
        with pytest.raises(NeedRekeyException):
            reader.read_message()
        sender.send_message(paramiko.Message(bytes((90,))))
        assert reader.read_message()[0] == 90


def test_polling_passes_data_on_and_leaves_other_packets(
    pair: tuple[Packetizer, Packetizer],
) -> None:
    sender, reader = pair
    taken: list[bytes] = []
    reader.reader.sinks[1] = lambda data: taken.append(bytes(data))
    assert reader.reader.poll(), "nothing has arrived"
    sender.send_data(1, b"one")
    sender.send_data(1, b"two")
    assert reader.reader.poll()
    assert taken == [b"one", b"two"]
    sender.send_message(paramiko.Message(bytes((90,))))
    sender.send_data(1, b"three")
    assert not reader.reader.poll()
    assert reader.read_message()[0] == 90
    sender.send_message(paramiko.Message(bytes((91,))))
    assert reader.read_message()[0] == 91
    assert taken == [b"one", b"two", b"three"]


def test_an_error_while_polling_is_raised_where_the_connection_is_read(
    pair: tuple[Packetizer, Packetizer],
) -> None:
    sender, reader = pair
    sender.close()
    assert not reader.reader.poll()
    with pytest.raises(EOFError):
        reader.read_message()


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


def test_used_up_keys_call_with_every_packet() -> None:
    calls: list[bool] = []
    keys = Keys(Engine(), bytes(12), 30, lambda: calls.append(True))
    for _ in range(4):
        keys.nonce(16)
    assert len(calls) == 3
