"""The page that a browser gets while the host cannot be reached."""

from __future__ import annotations

import pytest

from jlremote.errors import ConnectionTimedOut, JlrError
from jlremote.ssh.forward.waiting_page import is_page_load, waiting_page

GET = b"GET /lab HTTP/1.1\r\nHost: 127.0.0.1\r\n"


@pytest.mark.parametrize(
    ("request_", "expected"),
    [
        (GET + b"Accept: text/html,*/*\r\nSec-Fetch-Dest: document\r\n\r\n", True),
        (GET + b"accept: TEXT/HTML\r\nsec-fetch-dest: iframe\r\n\r\n", True),
        (GET + b"Accept: text/html\r\n\r\n", True),
        (GET + b"Accept: text/html\r\nSec-Fetch-Dest: empty\r\n\r\n", False),
        (GET + b"Accept: application/json\r\n\r\n", False),
        (GET + b"Upgrade: websocket\r\n\r\n", False),
        (b"POST /lab HTTP/1.1\r\nAccept: text/html\r\n\r\n", False),
        (b"SSH-2.0-OpenSSH\r\n", False),
        (b"", False),
        (b"\x16\x03\x01", False),
    ],
)
def test_only_a_browser_that_loads_a_page_gets_one(request_: bytes, expected: bool) -> None:
    assert is_page_load(request_) is expected


@pytest.mark.parametrize(
    ("host", "expected"),
    [
        ("localhost:8888", True),
        ("[::1]:8888", True),
        ("127.34.184.1:8888", True),
        ("Cont1-DGX.localhost:8888", True),
        ("6006-cont1-dgx.localhost:6007", True),
        ("evil.example:8888", False),
        ("evil.example", False),
        ("127.0.0.1.evil.example", False),
        ("127.34.184.evil.example", False),
        ("localhost.evil.example", False),
        ("evil.example/.localhost", False),
        ("", False),
    ],
)
def test_a_page_of_elsewhere_that_rebinds_its_name_gets_nothing(host: str, expected: bool) -> None:
    request = f"GET / HTTP/1.1\r\nHost: {host}\r\nAccept: text/html\r\n\r\n".encode()
    assert is_page_load(request) is expected


def test_a_request_without_a_host_gets_nothing() -> None:
    assert not is_page_load(b"GET / HTTP/1.0\r\nAccept: text/html\r\n\r\n")


def test_the_page_says_why_and_reloads_itself() -> None:
    head, _, body = waiting_page(
        ConnectionTimedOut("`<lab>` did not answer", hint="check the & VPN")
    ).partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 503 ")
    assert f"Content-Length: {len(body)}".encode() in head
    assert b"`&lt;lab&gt;` did not answer" in body
    assert b"check the &amp; VPN" in body
    assert b'http-equiv="refresh" content="2"' in body
    assert b"Your kernels keep running" in body


def test_a_page_promises_nothing_about_kernels_of_a_server_that_is_gone() -> None:
    body = waiting_page(JlrError("the container has ended")).decode()
    assert "kernels" not in body
    assert "<p></p>" not in body
