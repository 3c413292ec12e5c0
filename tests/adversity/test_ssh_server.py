"""A hostile SSH server, or a broken one: its host key, and a connection that is logged in."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import paramiko
import pytest
from paramiko import common

from jlremote.errors import HostKeyChanged
from jlremote.ssh.channels.channel_registry import FIRST_WINDOW
from jlremote.ssh.channels.event_loop import EventLoop
from jlremote.ssh.channels.session_channel import ScriptChannel
from jlremote.ssh.channels.tunnel_channel import TunnelChannel
from jlremote.ssh.config.destination import Destination, HostKeyRules
from jlremote.ssh.connect import connect
from jlremote.ssh.connection import Connection
from jlremote.ssh.transport.algorithms import Offer
from jlremote.ssh.transport.transport import Transport
from jlremote.ssh.trust.known_hosts import append, format_line
from jlremote.ssh.wire_format import string
from tests.adversity.ssh_peer import SECONDS, HostileServer, connected
from tests.lab.programs import wait_until
from tests.ssh.certificates import new_key, wire_blob
from tests.ssh.channels.parts import Handler
from tests.ssh.laptop import Person

CTR = Offer(ciphers=("aes128-ctr",))
PIECE = 32 << 10
# Neither text in UTF-8 nor long enough for what it claims to be.
GARBAGE = string(b"\xff\xfe") + b"\1"


@contextmanager
def tunnel(client: Transport, server: Any, handler: Handler) -> Iterator[tuple[TunnelChannel, Any]]:
    """Yield a channel of ours that is open, and the server's end of it."""
    loop = EventLoop()
    running = threading.Thread(target=loop.run)
    running.start()
    try:
        channel = TunnelChannel(client, handler, loop.call)
        loop.call(lambda: channel.ask(b"session"))
        theirs = server.accept(SECONDS)
        wait_until(lambda: handler.events == ["opened"], "the channel", timeout=SECONDS)
        yield channel, theirs
    finally:
        loop.stop()
        running.join(SECONDS)
        loop.close()


def session(client: Transport) -> ScriptChannel:
    channel = ScriptChannel(client)
    channel.ask(b"session")
    assert channel.answered.wait(SECONDS)
    return channel


def is_over(channel: ScriptChannel) -> bool:
    channel.run_actions()
    return channel.is_over


def sent(server: Any, kind: int, body: bytes) -> None:
    server._send_message(paramiko.Message(bytes((kind,)) + body))


@pytest.mark.parametrize("offer", [Offer(), CTR], ids=["gcm", "ctr"])
def test_data_beyond_the_window_ends_the_channel_and_not_the_connection(offer: Offer) -> None:
    class Reader(Handler):
        held = 0

        def received(self, data: memoryview) -> int:
            self.held += len(data)
            return 0

    handler = Reader()
    with connected(offer) as (client, server), tunnel(client, server, handler) as (_, theirs):
        data = theirs.remote_chanid.to_bytes(4, "big") + string(bytes(PIECE))
        for _ in range(4 * FIRST_WINDOW // PIECE):
            sent(server, common.MSG_CHANNEL_DATA, data)
        wait_until(lambda: "lost" in handler.events, "the end", timeout=SECONDS)
        assert handler.held <= 1.1 * FIRST_WINDOW + PIECE
        assert client.probe(SECONDS) < SECONDS


def test_an_exception_in_a_receiver_ends_its_channel_and_not_the_connection() -> None:
    class Broken(Handler):
        def received(self, data: memoryview) -> int:
            raise ZeroDivisionError

    broken, other = Broken(), Handler()
    with (
        connected() as (client, server),
        tunnel(client, server, broken) as (_, theirs),
        tunnel(client, server, other) as (_, others),
    ):
        theirs.sendall(b"x")
        others.sendall(b"hello")
        wait_until(lambda: "lost" in broken.events, "the end", timeout=SECONDS)
        wait_until(lambda: other.data == b"hello", "the other's data", timeout=SECONDS)
        wait_until(lambda: theirs.closed, "the server to be told", timeout=SECONDS)


@pytest.mark.parametrize("part", ["data", "exit status"])
def test_an_exception_in_a_session_ends_that_session_and_not_the_connection(
    part: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with connected() as (client, server):
        broken, other = session(client), session(client)
        monkeypatch.setattr(broken, "received" if part == "data" else "exited", None)
        theirs = server.accept(SECONDS)
        theirs.sendall(b"x")
        theirs.send_exit_status(0)
        wait_until(lambda: is_over(broken), "the end", timeout=SECONDS)
        wait_until(lambda: theirs.closed, "the server to be told", timeout=SECONDS)
        assert client.probe(SECONDS) < SECONDS
        assert not other.is_over


def test_a_request_on_a_tunnel_is_refused_once_it_wants_an_answer() -> None:
    with connected() as (client, server), tunnel(client, server, Handler()) as (_, theirs):
        answers: list[int] = []
        table = dict(server._channel_handler_table)
        table[common.MSG_CHANNEL_FAILURE] = lambda channel, _message: answers.append(channel.chanid)
        server._channel_handler_table = table
        for wants_answer in (b"\0", b"\1", b"\0"):
            request = theirs.remote_chanid.to_bytes(4, "big") + string(b"\xff") + wants_answer
            sent(server, common.MSG_CHANNEL_REQUEST, request)
        client.probe(SECONDS)
        wait_until(lambda: answers == [theirs.chanid], "an answer", timeout=SECONDS)


@pytest.mark.parametrize(
    ("kind", "body"),
    [
        (199, b"what?"),
        (common.MSG_GLOBAL_REQUEST, GARBAGE),
        (common.MSG_CHANNEL_OPEN, GARBAGE + bytes(20)),
        (common.MSG_UNIMPLEMENTED, bytes(4)),
        (common.MSG_USERAUTH_FAILURE, GARBAGE),
    ],
    ids=["unknown", "global request", "channel", "unimplemented", "late refusal"],
)
def test_a_message_that_makes_no_sense_does_not_end_the_connection(kind: int, body: bytes) -> None:
    with connected() as (client, server):
        sent(server, kind, body)
        assert client.probe(SECONDS) < SECONDS
        assert client.is_active()


@pytest.mark.parametrize("kind", range(common.MSG_CHANNEL_WINDOW_ADJUST, 101))
def test_garbage_for_a_session_ends_at_most_that_session(kind: int) -> None:
    with connected() as (client, server):
        one, other = session(client), session(client)
        sent(server, kind, one._number.to_bytes(4, "big") + GARBAGE)
        assert client.probe(SECONDS) < SECONDS
        assert not other.is_over


def test_a_server_that_knows_no_global_requests_counts_as_alive() -> None:
    with connected() as (client, server):
        server._handler_table[common.MSG_GLOBAL_REQUEST] = lambda message: sent(
            server, common.MSG_UNIMPLEMENTED, message.seqno.to_bytes(4, "big")
        )
        assert client.probe(1) < 1


def test_a_session_that_is_granted_too_late_is_given_back() -> None:
    with connected() as (client, server):
        late = server._handler_table[common.MSG_CHANNEL_OPEN]
        kept: list[Any] = []
        server._handler_table[common.MSG_CHANNEL_OPEN] = kept.append
        given_up = ScriptChannel(client)
        given_up.ask(b"session")
        given_up.close()
        wait_until(lambda: bool(kept), "the request", timeout=SECONDS)
        late(kept[0])
        theirs = server.accept(SECONDS)
        wait_until(lambda: theirs.closed, "the session's end", timeout=SECONDS)
        server._handler_table[common.MSG_CHANNEL_OPEN] = late
        assert session(client).is_granted


def test_new_keys_for_another_kind_of_cipher_are_used_by_both_sides() -> None:
    with connected() as (client, server):
        assert client.agreed_on_strict_kex
        assert client.local_cipher.endswith("gcm@openssh.com")
        for _ in range(5):
            client.probe(SECONDS)
        client._preferred_ciphers = CTR.ciphers
        client.renegotiate_keys()
        assert client.local_cipher == "aes128-ctr"
        assert client.probe(SECONDS) < SECONDS
        assert client.is_active(), server.get_exception()


def test_a_request_during_a_key_exchange_is_answered_after_it() -> None:
    with connected() as (client, server):
        answered = threading.Event()
        server._handler_table[common.MSG_REQUEST_FAILURE] = lambda _message: answered.set()
        client.clear_to_send.clear()
        sent(server, common.MSG_GLOBAL_REQUEST, string(b"keepalive@openssh.com") + b"\1")
        sent(server, common.MSG_UNIMPLEMENTED, bytes(4))
        wait_until(lambda: bool(client._late_replies), "the request", timeout=SECONDS)
        assert not answered.is_set()
        client.renegotiate_keys()
        assert answered.wait(SECONDS)


def test_a_group_of_1024_bits_is_refused() -> None:
    offer = Offer(key_exchange=("diffie-hellman-group-exchange-sha256",))

    class SmallGroups:
        def get_modulus(self, *_bits: int) -> tuple[int, int]:
            # The second Oakley group, RFC 2409 section 6.2.
            return 2, 2**1024 - 2**960 - 1 + 2**64 * 0x0BEEF

    before, paramiko.Transport._modulus_pack = paramiko.Transport._modulus_pack, SmallGroups()
    try:
        with pytest.raises(paramiko.SSHException, match="group of 1024 bits"), connected(offer):
            pass
    finally:
        paramiko.Transport._modulus_pack = before


def test_a_host_key_that_nothing_checked_ends_the_handshake(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Another release of paramiko may call the check by another name."""
    monkeypatch.delattr(Transport, "_verify_key")
    with pytest.raises(paramiko.SSHException, match="key was not checked"), connected():
        pass


def test_the_reason_of_a_disconnection_is_kept_without_its_escape_sequences() -> None:
    with connected() as (client, server):
        words = string(b"\x1b]52;c;ZXZpbA==\x07maintenance\nat noon") + string(b"en")
        sent(server, common.MSG_DISCONNECT, bytes((0, 0, 0, 11)) + words)
        assert client.ended.wait(SECONDS)
        assert Connection(client).reason == "maintenance at noon"


def test_the_error_that_ends_a_connection_is_kept_and_logged(
    caplog: pytest.LogCaptureFixture,
) -> None:
    with connected() as (client, server):
        connection = Connection(client)
        assert connection.description.startswith("SSH-2.0-paramiko_")
        assert connection.description.endswith(", ecdsa-sha2-nistp256, aes128-gcm@openssh.com")
        server.sock.sendall(bytes(100))
        assert client.ended.wait(SECONDS)
        assert connection.reason
        assert connection.reason in caplog.text


def test_a_clock_that_is_set_back_does_not_prolong_a_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    with connected() as (client, _server):
        monkeypatch.setattr(time, "time", lambda: 0.0)
        client.clear_to_send_timeout = 0.1
        client.clear_to_send.clear()
        with pytest.raises(paramiko.SSHException, match="Key-exchange timed out"):
            client._send_user_message(SimpleNamespace())
        client.clear_to_send.set()


@pytest.mark.parametrize("strict", ["yes", "no", "ask", "accept-new"])
def test_a_host_key_of_another_type_gets_no_password(strict: Any, tmp_path: Path) -> None:
    known = tmp_path / "known_hosts"
    middle, person = HostileServer(), Person(["yes", "secret", "secret"])
    with middle.listening():
        place = f"[127.0.0.1]:{middle.port}"
        append(known, format_line(place, wire_blob(new_key()), hashed=strict == "no"))
        before = known.read_bytes()
        rules = HostKeyRules(user_files=(known,), strict=strict)
        destination = Destination("lab", "127.0.0.1", middle.port, "me", host_key=rules)
        with pytest.raises(HostKeyChanged, match=f"{known}:1 has the ED25519 key SHA256:"):
            connect(destination, person, agent_socket=None)
    assert middle.account.secrets == []
    assert person.asked == []
    assert known.read_bytes() == before, "the attacker's key was remembered"
