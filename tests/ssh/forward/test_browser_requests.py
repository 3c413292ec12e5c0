"""What a browser asks for: pages, lists, and what may be sent twice."""

from __future__ import annotations

import pytest

from jlremote.ssh.forward.browser_requests import is_list, is_page_load, may_be_repeated

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


FETCH = b"Host: localhost\r\nSec-Fetch-Mode: cors\r\n"
SAVE = b"PUT /api/contents/a.ipynb HTTP/1.1\r\n" + FETCH + b"Content-Length: 20\r\n\r\n"


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        (b"GET /one-0a/api/kernels?1795571716204 HTTP/1.1\r\n" + FETCH, True),
        (b"GET /one-0a/lab/api/workspaces HTTP/1.1\r\n" + FETCH, True),
        (b"GET /one-0a/api/kernels/30b1?179557 HTTP/1.1\r\n" + FETCH, False),
        (b"GET /one-0a/api/contents/a.ipynb?content=0 HTTP/1.1\r\n" + FETCH, False),
        (b"POST /one-0a/api/kernels HTTP/1.1\r\n" + FETCH, False),
        (b"GET /one-0a/api/kernels HTTP/1.1\r\nHost: localhost\r\n\r\n", False),
    ],
)
def test_a_list_is_what_a_page_asks_for_again_and_again(said: bytes, expected: bool) -> None:
    assert is_list(said) is expected


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        (SAVE + b'{"content": "abcdef"}'[:20], True),
        (SAVE + b'{"content"', True),
        (SAVE, True),
        (SAVE + b'{"chunk": 2, "more": 1}'[:20], False),
        (SAVE + b"x" * 21, False),
        (SAVE[:-2], False),
        (SAVE.replace(b"PUT", b"POST"), False),
        (SAVE.replace(b"Sec-Fetch-Mode", b"Accept"), False),
        (SAVE.replace(b"Content-Length", b"Expect"), False),
        (SAVE.replace(b"PUT", b"DELETE"), False),
    ],
)
def test_a_page_may_save_a_file_twice_but_append_to_it_once(said: bytes, expected: bool) -> None:
    assert may_be_repeated(said) is expected
