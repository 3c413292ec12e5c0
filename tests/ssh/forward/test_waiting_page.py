"""The page that a browser gets while the host cannot be reached."""

from __future__ import annotations

from html import unescape

import pytest

from jlremote.errors import ConnectionTimedOut, JlrError
from jlremote.jupyter.survey import ContainerRestarting, refuse_halted
from jlremote.place.runtimes.runtime import Container
from jlremote.place.runtimes.table import runtime_named
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


def test_words_of_a_host_that_are_no_text_are_shown() -> None:
    assert b"it said `?`" in waiting_page(JlrError("it said `\ud800`"))


def test_a_page_promises_nothing_about_kernels_of_a_server_that_is_gone() -> None:
    body = waiting_page(JlrError("the container has ended")).decode()
    assert "kernels" not in body
    assert "<p></p>" not in body


def test_a_container_that_its_engine_restarts_is_told_with_where_its_output_is() -> None:
    restarts = Container(
        "c0ffee",
        "cont1",
        running=False,
        started_at="2026-01-01",
        restarting=True,
        halt="its engine is restarting it",
    )
    with pytest.raises(ContainerRestarting) as told:
        refuse_halted("dgx", "cont1", runtime_named("docker"), restarts)
    body = unescape(waiting_page(told.value).decode())
    assert "<p>the container `cont1` does not run: its engine is restarting it</p>" in body
    assert "`jlr logs dgx/cont1 --container` has what it wrote before it ended" in body
    assert 'http-equiv="refresh"' in body
    assert "kernels" not in body
