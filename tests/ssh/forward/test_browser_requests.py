"""What a browser asks for: under which names, pages, lists, and what may be sent twice."""

from __future__ import annotations

from dataclasses import replace
from html import unescape

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jlremote.errors import ConnectionTimedOut, JlrError, NotFound
from jlremote.jupyter.survey import refuse_halted
from jlremote.place.runtimes.runtime import Container
from jlremote.place.runtimes.table import runtime_named
from jlremote.ssh.forward.browser_requests import (
    MOST_OF_A_HEAD,
    hosts_of,
    is_admitted,
    is_list,
    is_page_load,
    may_be_repeated,
    waiting_page,
)

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
        (b"", False),
    ],
)
def test_only_a_browser_that_loads_a_page_gets_one(request_: bytes, expected: bool) -> None:
    assert is_page_load(request_) is expected


HOSTS = hosts_of(8888, "cont1-dgx.localhost")


def first(host: str, target: str = "/lab") -> bytes:
    return f"GET {target} HTTP/1.1\r\nHost: {host}\r\nAccept: */*\r\n\r\n".encode()


@pytest.mark.parametrize(
    ("host", "expected"),
    [
        ("localhost:8888", True),
        ("127.0.0.1:8888", True),
        ("[::1]:8888", True),
        ("127.34.184.1:8888", True),
        ("Cont1-DGX.localhost:8888", True),
        ("cont2-dgx.localhost:8888", False),
        ("cont1-dgx.localhost:8889", False),
        ("cont1-dgx.localhost", False),
        ("cont1-dgx.localhost.:8888", False),
        ("evil.example:8888", False),
        ("evil.example@localhost:8888", False),
        ("localhost:8888, evil.example", False),
        ("", False),
    ],
)
def test_a_request_is_passed_on_only_under_the_forwards_own_names(
    host: str, expected: bool
) -> None:
    assert is_admitted(first(host), HOSTS, over=False) is expected


OWN = b"Host: localhost:8888\r\n"


@pytest.mark.parametrize(
    "begin",
    [
        b"GET / HTTP/1.1\r\n\r\n",
        b"GET / HTTP/1.0\r\n\r\n",
        b"GET / HTTP/1.1\r\n%b%b\r\n" % (OWN, OWN),
        b"GET / HTTP/1.1\r\n%bhost: evil.example\r\n\r\n" % OWN,
        b"GET / HTTP/1.1\r\nHost : evil.example\r\n%b\r\n" % OWN,
        b"GET / HTTP/1.1\r\n%b evil.example\r\n\r\n" % OWN,
        b"GET / HTTP/1.1\r\n Host: evil.example\r\n%b\r\n" % OWN,
        b"GET / HTTP/1.1\nHost: localhost:8888\n\n",
        b"GET / HTTP/1.1\r\nX: y\rHost: evil.example\r\n%b\r\n" % OWN,
        b"GET / HTTP/1.1\r\nX: \0\r\n%b\r\n" % OWN,
        b"GET http://evil.example/ HTTP/1.1\r\n%b\r\n" % OWN,
        b"CONNECT evil.example:80 HTTP/1.1\r\n%b\r\n" % OWN,
        b"GET  / HTTP/1.1\r\n%b\r\n" % OWN,
        b"GET\t/ HTTP/1.1\r\n%b\r\n" % OWN,
        b"GET / http/1.1\r\nHost: evil.example\r\n\r\n",
        b"GET / HTTP/2.0\r\n%b\r\n" % OWN,
        b"\r\n\r\n" + first("evil.example:8888"),
        b"odd / HTTP/1.1\r\nHost: evil.example\r\n\r\n",
        b"GET / HTTP/1.1\r\n%bX: %b" % (OWN, b"x" * MOST_OF_A_HEAD),
        b"odd /%b" % (b"x" * MOST_OF_A_HEAD),
    ],
)
def test_a_request_in_a_form_that_no_browser_sends_is_refused(begin: bytes) -> None:
    assert is_admitted(begin, HOSTS, over=False) is False


@pytest.mark.parametrize(
    "begin",
    [
        b"\x16\x03\x01\x02\x00\x01\n\x08http/1.1\n",
        b"SSH-2.0-OpenSSH_9.2\r\n",
        b"*1\r\n$4\r\nPING\r\n",
        b"EHLO laptop\r\n",
        b"GET key\r\n",
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
        b"Content-Length: 20\r\n\r\n{}",
        b"early bird",
        b"\0",
        bytes(range(256)) * 4,
    ],
)
def test_what_is_no_http_passes_at_once(begin: bytes) -> None:
    assert is_admitted(begin, HOSTS, over=False) is True


@pytest.mark.parametrize("host", ["localhost:8888", "evil.example:8888"])
def test_a_head_in_many_pieces_is_judged_when_it_is_whole(host: str) -> None:
    whole = first(host)
    for size in range(len(whole)):
        assert is_admitted(whole[:size], HOSTS, over=False) is None, whole[:size]
    assert is_admitted(whole + b"more", HOSTS, over=False) is (host == "localhost:8888")


def test_a_word_may_be_all_that_a_client_says_but_half_a_request_is_not() -> None:
    assert is_admitted(b"PING", HOSTS, over=True) is True
    assert is_admitted(b"GET / HTTP/1.1\r\nHost: loc", HOSTS, over=True) is None


@given(st.binary(max_size=300), st.booleans())
def test_no_beginning_raises_or_takes_long(begin: bytes, over: bool) -> None:
    for text in (begin, b"GET / HTTP/1.1\r\n" + begin, first("localhost:8888")[:-2] + begin):
        assert is_admitted(text, HOSTS, over=over) in (True, False, None)


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
    body = waiting_page(JlrError("the container has ended: `\ud800`")).decode()
    assert "ended: `?`" in body, "words of a host that are no text are shown"
    assert "kernels" not in body
    assert "<p></p>" not in body


def test_a_container_that_its_engine_restarts_is_told_with_where_its_output_is() -> None:
    restarts = Container("c0ffee", "cont1", running=False, started_at="2026-01-01", restarting=True)
    restarts = replace(restarts, halt="its engine is restarting it")
    with pytest.raises(NotFound) as told:
        refuse_halted("dgx", "cont1", runtime_named("docker"), restarts)
    body = unescape(waiting_page(told.value).decode())
    assert "<p>the container `cont1` does not run: its engine is restarting it</p>" in body
    assert "`jlr logs dgx/cont1 --container` has what it wrote before it ended" in body
    assert 'http-equiv="refresh"' in body
    assert "kernels" not in body
