"""Bytes in place of SSH packets: each ends in one error that is no bug, and soon."""

from __future__ import annotations

import socket
import struct
from collections.abc import Iterator
from contextlib import contextmanager, suppress

import paramiko
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from paramiko import common

from jlremote.errors import JlrError, Unreachable
from jlremote.ssh.config.destination import Destination
from jlremote.ssh.connection import Connection
from jlremote.ssh.failures import translated
from jlremote.ssh.login.user_authentication import UserAuthentication
from jlremote.ssh.transport.algorithms import Offer
from jlremote.ssh.transport.transport import Transport
from jlremote.ssh.wire_format import string
from tests.adversity.ssh_peer import SECONDS, connected
from tests.long import WANTED

EXAMPLES = 100 if WANTED else 20
DESTINATION = Destination("lab", "lab.example.org", 22, "me")
GREETING = b"SSH-2.0-hostile\r\n"
BODIES = st.binary(max_size=80) | st.builds(
    lambda parts: b"".join(map(string, parts)), st.lists(st.binary(max_size=12), max_size=12)
)


def packet(payload: bytes, padding: int = 8) -> bytes:
    return struct.pack(">IB", len(payload) + padding + 1, padding) + payload + bytes(padding)


def key_exchange(*lists: bytes) -> bytes:
    return bytes((common.MSG_KEXINIT,)) + bytes(16) + b"".join(map(string, lists)) + bytes(5)


def error_of(said: bytes) -> JlrError:
    """Return the error of a handshake with a server that sends these bytes and hangs up."""
    ours, theirs = socket.socketpair()
    with ours, theirs:
        transport = Transport(ours, Offer())
        theirs.sendall(said)
        theirs.shutdown(socket.SHUT_WR)
        try:
            with pytest.raises(JlrError) as caught, translated(DESTINATION, transport):
                transport.handshake(SECONDS)
        finally:
            transport.close()
            transport.join(SECONDS)
        assert transport.ended.is_set()
        assert not transport.is_alive()
    return caught.value


HOSTILE = {
    "names that are not UTF-8": packet(key_exchange(*(b"\xff\xfe",) * 10)),
    "no lists": packet(bytes((common.MSG_KEXINIT,))),
    "lists that are longer than the packet": packet(b"\x14" + bytes(16) + b"\xff" * 40),
    "an empty packet": packet(b""),
    "many empty packets": packet(b"") * 50,
    "more padding than packet": struct.pack(">IB", 12, 255) + bytes(100),
    "a packet of 4 GB": b"\xff" * 64,
    "a packet of nothing": bytes(64),
    "another message": packet(b"\x5a" + b"\xff" * 40),
    "a disconnection that is not UTF-8": packet(b"\1" + bytes(4) + string(b"\xff\x1b[2J")),
}


@pytest.mark.parametrize("said", HOSTILE.values(), ids=HOSTILE)
def test_a_handshake_of_nonsense_is_an_error_about_the_host(said: bytes) -> None:
    error = error_of(GREETING + said)
    assert isinstance(error, Unreachable)
    assert "\x1b" not in error.message


@pytest.mark.parametrize("said", [b"\xff\xfe\r\n", b"\0" * 5000, b"x" * 100_000, b"\r\n" * 5000])
def test_what_does_not_greet_as_ssh_is_an_error_about_the_host(said: bytes) -> None:
    assert isinstance(error_of(said), Unreachable)


@settings(max_examples=EXAMPLES, derandomize=True)
@given(
    st.lists(
        st.builds(packet, st.builds(lambda k, b: bytes((k,)) + b, st.integers(0, 255), BODIES))
    )
)
def test_no_packets_before_the_keys_are_a_bug(packets: list[bytes]) -> None:
    assert isinstance(error_of(GREETING + b"".join(packets)), Unreachable)


@pytest.mark.parametrize("body", [b"", string(b"\xff\xfe") + b"\0", b"\xff" * 30])
def test_methods_of_a_login_that_are_not_text_are_an_answer(body: bytes) -> None:
    with at_login() as (wire, server):
        server._send_message(paramiko.Message(bytes((common.MSG_USERAUTH_FAILURE,)) + body))
        assert not wire._outcome(*wire._wait()).success


def test_a_login_of_four_billion_questions_is_refused() -> None:
    with at_login() as (wire, server):
        body = string(b"") * 3 + b"\xff\xff\xff\xff"
        server._send_message(paramiko.Message(bytes((common.MSG_USERAUTH_INFO_REQUEST,)) + body))
        with pytest.raises(paramiko.SSHException, match="asks 4294967295 questions"):
            wire.interactive(lambda _: ())


@contextmanager
def at_login() -> Iterator[tuple[UserAuthentication, paramiko.Transport]]:
    """Yield our side of a login, and the server's transport."""
    with connected() as (client, server):
        yield UserAuthentication(client, "me", SECONDS), server


@example([(common.MSG_EXT_INFO, b"\xff" * 8)])
@settings(max_examples=EXAMPLES, derandomize=True)
@given(st.lists(st.tuples(st.integers(1, 255), BODIES), min_size=1, max_size=10))
def test_after_messages_of_all_kinds_a_connection_is_alive_or_ended(
    messages: list[tuple[int, bytes]],
) -> None:
    with connected() as (client, server):
        for kind, body in messages:
            with suppress(OSError, EOFError):
                server._send_message(paramiko.Message(bytes((kind,)) + body))
        with suppress(OSError):
            server.sock.shutdown(socket.SHUT_RDWR)
        assert client.ended.wait(SECONDS), "its thread is dead, and nothing was told"
        assert "\x1b" not in Connection(client).reason
