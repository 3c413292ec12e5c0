"""Each cause has its own error, message and hint; no foreign exception gets out."""

from __future__ import annotations

import inspect
import socket
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import paramiko
import pytest
from paramiko import ssh_exception

from jlremote.errors import (
    Authentication,
    ConnectionRefused,
    ConnectionTimedOut,
    HungUp,
    JlrError,
    LinkLost,
    NameNotResolved,
    NoCommonAlgorithm,
    NotSSH,
    TooMany,
    Unreachable,
)
from jlremote.ssh.config.destination import Destination
from jlremote.ssh.failures import explain, explain_channel, translated
from jlremote.ssh.transport.server_socket import connect_tcp
from tests.lab.accounts import Account
from tests.lab.programs import PATIENCE, load
from tests.lab.sshd import SSHServer
from tests.ssh.laptop import Laptop

_PIPE = Path(__file__).with_name("proxy_program.py")
DESTINATION = Destination("lab", "lab.example.org", 22, "me")
ARGUMENTS: dict[str, tuple[object, ...]] = {
    "BadAuthenticationType": ("bad", ["publickey"]),
    "PartialAuthentication": (["password"],),
    "ChannelException": (2, "Connect failed"),
    "ProxyCommandFailure": ("nc", "gone"),
    "NoValidConnectionsError": ({("127.0.0.1", 22): OSError("no")},),
    "CouldNotCanonicalize": ("name",),
}


def foreign() -> list[type[BaseException]]:
    found = [
        kind
        for _, kind in inspect.getmembers(ssh_exception, inspect.isclass)
        if issubclass(kind, BaseException) and kind.__module__ == ssh_exception.__name__
    ]
    return [*found, socket.gaierror, TimeoutError, EOFError, ConnectionResetError, OSError]


@pytest.mark.parametrize("kind", foreign(), ids=lambda kind: kind.__name__)
def test_no_exception_of_paramiko_or_the_system_gets_out(kind: type[BaseException]) -> None:
    if kind is ssh_exception.BadHostKeyException:
        key = paramiko.ECDSAKey.generate()
        error: BaseException = kind("host", key, key)
    else:
        error = kind(*ARGUMENTS.get(kind.__name__, ("reason",)))
    with pytest.raises(JlrError) as caught, translated(DESTINATION):
        raise error
    assert "lab" in caught.value.message
    assert not caught.value.message.endswith(".")


@pytest.mark.parametrize(
    ("words", "kind"),
    [
        ("administratively prohibited: open failed", Unreachable),
        ("Connection refused", ConnectionRefused),
        ("Connection timed out", ConnectionTimedOut),
        ("Name or service not known", NameNotResolved),
        ("\x1b[31mweird\n", Unreachable),
    ],
)
def test_a_refused_channel_becomes_an_error_with_the_reason(
    words: str, kind: type[JlrError]
) -> None:
    error = explain_channel(words, "inner", "bastion")
    assert type(error) is kind
    assert "\x1b" not in error.message


@pytest.mark.parametrize(
    ("attempts", "hints", "others"),
    [
        ({"publickey": 6}, ("`IdentitiesOnly yes`",), ("password",)),
        ({"password": 6}, ("check the password",), ("IdentitiesOnly",)),
        ({"publickey": 1, "password": 5}, ("check the password",), ("IdentitiesOnly",)),
        ({"publickey": 5, "password": 1}, ("check the password", "`IdentitiesOnly yes`"), ()),
    ],
)
def test_too_many_attempts_are_told_by_what_was_tried(
    attempts: dict[str, int], hints: tuple[str, ...], others: tuple[str, ...]
) -> None:
    login = SimpleNamespace(reasons=(), attempts=Counter(attempts))
    said = "Too many authentication failures"
    transport = SimpleNamespace(auth_handler=login, disconnection=said)
    error = explain(EOFError(), DESTINATION, transport)
    assert isinstance(error, Authentication)
    assert all(hint in str(error.hint) for hint in hints)
    assert not any(other in str(error.hint) for other in others)


@contextmanager
def answering(words: bytes, *, close: bool) -> Iterator[int]:
    """Something that listens, says `words`, and hangs up or waits."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        ended = threading.Event()

        def serve() -> None:
            client, _ = listener.accept()
            with client:
                client.sendall(words)
                ended.wait(0 if close else 20)

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        yield listener.getsockname()[1]
        ended.set()
        thread.join(PATIENCE)


@pytest.mark.parametrize(
    ("words", "close", "kind"),
    [
        (b"HTTP/1.1 400 Bad Request\r\n\r\n", True, NotSSH),
        (b"", True, HungUp),
        (b"Exceeded MaxStartups\r\n", True, TooMany),
        (b"Not allowed at this time\r\n", True, TooMany),
        (b"220 mail.example.org ESMTP\r\n" * 200, False, NotSSH),
        (b"\0\xff" * 5000, True, HungUp),
        (b"SSH-1.5-old\r\n", False, NoCommonAlgorithm),
        (b"SSH-2.0-mute\r\n", True, LinkLost),
        (b"SSH-2.0-mute\r\n", False, ConnectionTimedOut),
        (b"SSH-2.0-odd\r\n" + b"\xff" * 4000, False, Unreachable),
    ],
    ids=range(10),
)
def test_a_server_that_does_not_speak_ssh_is_quoted(
    words: bytes,
    close: bool,
    kind: type[JlrError],
    guest: Laptop,
    account: Account,
    host: SSHServer,
    capfd: pytest.CaptureFixture[str],
) -> None:
    with answering(words, close=close) as port:
        guest.configure(host, account, f"Port {port}", "ConnectTimeout 2")
        error = guest.ours()
    assert type(error) is kind, repr(error)
    assert "HTTP/1.1 400 Bad" in str(error) or not words.startswith(b"HTTP")
    assert capfd.readouterr() == ("", ""), "a library printed"


@pytest.mark.parametrize("name", ["a..b", "x" * 64, f"{'x' * 64}.example"])
def test_a_name_that_no_host_can_have_has_no_address(name: str) -> None:
    with pytest.raises(NameNotResolved, match="cannot be the name of a host: label") as caught:
        connect_tcp(Destination("lab", name, 22, "me"), b"hello")
    assert caught.value.hint


def test_a_failing_proxy_command_is_quoted(
    host: SSHServer, guest: Laptop, account: Account
) -> None:
    guest.configure(host, account, "ProxyCommand echo 'no route to bastion' >&2; exit 1")
    error = guest.ours()
    assert isinstance(error, Unreachable)
    assert "no route to bastion" in error.message


def test_a_proxy_command_with_much_output_does_not_stall(
    host: SSHServer, guest: Laptop, account: Account
) -> None:
    noisy = f"head -c 300000 /dev/zero >&2; exec {sys.executable} {_PIPE} %h %p"
    guest.configure(host, account, f"ProxyCommand sh -c '{noisy}'")
    assert guest.get_in()


@pytest.mark.lab  # it takes seconds
@pytest.mark.parametrize("seconds", [0.5, pytest.param(22.2, marks=pytest.mark.long)])
def test_a_network_that_comes_back_is_used_within_a_second(seconds: float) -> None:
    """However long it was away, and whatever pauses the kernel makes by then."""
    with socket.create_server(("127.0.0.1", 0), backlog=0) as listener, ExitStack() as full:
        port = listener.getsockname()[1]
        for _ in range(2):  # from the second on the kernel drops what comes
            waiting = full.enter_context(socket.socket())
            waiting.setblocking(False)
            waiting.connect_ex(("127.0.0.1", port))
        moments = []

        def come_back() -> None:
            threading.Event().wait(seconds)
            moments.append(time.monotonic())
            with suppress(OSError):  # it has been shut down
                while True:
                    full.enter_context(listener.accept()[0]).sendall(b"SSH-2.0-back\r\n")

        back = threading.Thread(target=come_back)
        back.start()
        try:
            connect_tcp(Destination("lab", "127.0.0.1", port, "me"), b"hello").close()
            assert 0 < time.monotonic() - moments[0] < 1.5
        finally:
            listener.shutdown(socket.SHUT_RDWR)
            back.join()


@pytest.mark.parametrize(
    ("address", "reason"),
    [
        ("192.0.2.1", "Cannot assign requested address"),
        ("no-such-name.invalid", "Name or service not known"),
        ("::1", "Address family for hostname not supported"),
        ("ü..x", "it cannot be an address"),
        ("\udcff", "it cannot be an address"),
        ("ü" * 70, "it cannot be an address"),
    ],
)
def test_an_address_of_ours_that_cannot_be_used_is_named(address: str, reason: str) -> None:
    destination = replace(DESTINATION, hostname="127.0.0.1", bind_address=address)
    with pytest.raises(Unreachable) as caught, translated(destination):
        connect_tcp(destination, b"hello")
    assert type(caught.value) is Unreachable
    assert caught.value.message == f"cannot reach `127.0.0.1`: `BindAddress {address}`: {reason}"
    assert "BindAddress" in (caught.value.hint or "")


@pytest.mark.lab  # it takes seconds
def test_a_lost_connection_attempt_is_replaced_by_another() -> None:
    """What took the first one never answers it, and the next one gets through."""
    with socket.create_server(("127.0.0.1", 0)) as listener, ExitStack() as accepted:
        heard = []

        def answer_the_second() -> None:
            for greeting in (b"", b"SSH-2.0-back\r\n"):
                call = accepted.enter_context(listener.accept()[0])
                heard.append(call.recv(100))
                call.sendall(greeting)

        thread = threading.Thread(target=answer_the_second)
        thread.start()
        began = time.monotonic()
        destination = Destination("lab", "127.0.0.1", listener.getsockname()[1], "me")
        with connect_tcp(destination, b"hello") as sock:
            assert sock.recv(100) == b"SSH-2.0-back\r\n"
        assert time.monotonic() - began < 3 * load()
        thread.join()
        assert heard == [b"hello", b"hello"]


def two_addresses(port: int) -> list[tuple[object, ...]]:
    """Return what a name server says of a name with two login nodes."""
    facts = (socket.AF_INET, socket.SOCK_STREAM, 6, "")
    return [(*facts, (address, port)) for address in ("127.0.0.1", "127.0.0.2")]


@pytest.mark.lab  # it takes seconds
@pytest.mark.parametrize("dead", ["silent", "refusing"])
def test_a_dead_address_of_several_costs_a_second_at_most(
    dead: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with socket.create_server(("127.0.0.2", 0)) as listener, ExitStack() as stack:
        port = listener.getsockname()[1]
        if dead == "silent":
            full = stack.enter_context(socket.create_server(("127.0.0.1", port), backlog=0))
            for _ in range(2):  # from the second on the kernel drops what comes
                waiting = stack.enter_context(socket.socket())
                waiting.setblocking(False)
                waiting.connect_ex(full.getsockname())
        monkeypatch.setattr(socket, "getaddrinfo", lambda *_: two_addresses(port))

        def greet() -> None:
            stack.enter_context(listener.accept()[0]).sendall(b"SSH-2.0-alive\r\n")

        thread = threading.Thread(target=greet)
        thread.start()
        began = time.monotonic()
        with connect_tcp(Destination("login", "login", port, "me"), b"hello") as sock:
            assert sock.getpeername() == ("127.0.0.2", port)
        assert time.monotonic() - began < 2 * load()
        thread.join()


def test_addresses_that_all_fail_end_with_the_error_of_the_last(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_: two_addresses(port))
    with pytest.raises(ConnectionRefusedError):
        connect_tcp(Destination("login", "login", port, "me"), b"hello")


@pytest.mark.lab  # it takes seconds
def test_a_server_that_greets_slowly_is_waited_for() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener, ExitStack() as accepted:

        def greet_late() -> None:
            calls = [accepted.enter_context(listener.accept()[0]) for _ in range(3)]
            calls[0].sendall(b"SSH-2.0-slow\r\n")

        thread = threading.Thread(target=greet_late)
        thread.start()
        destination = Destination("lab", "127.0.0.1", listener.getsockname()[1], "me")
        with connect_tcp(destination, b"hello") as sock:
            assert sock.recv(100) == b"SSH-2.0-slow\r\n"
        thread.join()
