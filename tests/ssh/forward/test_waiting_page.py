"""The page that a browser gets while the host cannot be reached."""

from __future__ import annotations

from jlremote.errors import ConnectionTimedOut, JlrError
from jlremote.ssh.forward.waiting_page import waiting_page


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
