"""A browser is led to a forward under a name that is not the forward's own."""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import pytest
from playwright.sync_api import BrowserContext

from jlremote.forwards import loopback_page
from jlremote.jupyter.endpoint import hostname
from jlremote.place.host.addresses import Target, own_address
from jlremote.ssh.forward.forwarder import TunnelForward
from tests.adversity.sites import ASK, Site, opened
from tests.forward.parts import SwitchedGateway, serving
from tests.lab.browser import ELSEWHERE
from tests.long import LONG

SECRET = "login=jupyter"
OWN = hostname("dgx", "cont1")
REFUSED = "this port does not answer under this name"

# Starts a forward of that name to a port of the host; returns its local port.
Lead = Callable[[str, int], int]


@pytest.fixture
def lead(transport: Any) -> Iterator[Lead]:
    with ExitStack() as stack:

        def started(name: str, port: int) -> int:
            gateway = SwitchedGateway()
            gateway.up(transport, Target("127.0.0.1", port))
            forward = TunnelForward(0, gateway, name)
            forward.start()
            stack.callback(forward.stop)
            return forward.local_port

        yield started


def read(chromium: BrowserContext, url: str) -> str:
    return opened(chromium, url).inner_text("body")


@pytest.mark.parametrize("theirs", [("hostile", None), LONG(("hostile", 6006)), ("cont1", 6006)])
def test_a_page_that_leads_the_browser_to_its_own_port_under_another_name_gets_no_cookie(
    theirs: tuple[str, int | None],
    chromium: BrowserContext,
    lead: Lead,
    hostile: Site,
    jupyter: Site,
) -> None:
    """It even knows the path of the cookie; it is of a session, or of a further port."""
    port, elsewhere = lead(OWN, jupyter.port), lead(hostname("dgx", *theirs), hostile.port)
    own = f"http://{OWN}:{port}{jupyter.base}"
    assert read(chromium, f"{own}?token=a") == "jupyter"
    assert read(chromium, own) == "jupyter"
    assert jupyter.was_sent(SECRET)
    page = opened(chromium, f"http://{hostname('dgx', *theirs)}:{elsewhere}/")
    assert page.inner_text("body") == "hostile"
    for url in (f"http://{OWN}:{elsewhere}{jupyter.base}", f"http://{OWN}:{elsewhere}/"):
        page.evaluate(ASK, url)
        assert REFUSED in read(chromium, url)
    assert not hostile.was_sent(SECRET)
    assert {request.host for request in hostile.asked} == {hostname("dgx", *theirs)}
    assert read(chromium, own) == "jupyter", "the session's own page has lost it"


@pytest.mark.parametrize("port", [None, LONG(6006)])
def test_a_page_that_rebinds_its_name_reads_nothing(
    port: int | None, chromium: BrowserContext, lead: Lead, jupyter: Site
) -> None:
    local = lead(hostname("dgx", "cont1", port), jupyter.port)
    page = opened(chromium, f"http://{ELSEWHERE}:{local}/")
    assert REFUSED in page.inner_text("body")
    for method in ("GET", "POST", "odd"):
        asked = f"fetch('/', {{method: '{method}'}}).then(a => a.text())"
        assert REFUSED in page.evaluate(asked)
    page.evaluate(ASK, page.url)
    assert jupyter.asked == []
    for name in (hostname("dgx", "cont1", port), "localhost", "127.0.0.1", own_address(local)):
        assert read(chromium, f"http://{name}:{local}/") == "jupyter"


def test_a_server_that_answers_before_it_is_asked_is_not_heard_under_another_name(
    chromium: BrowserContext, lead: Lead
) -> None:
    def answer_first(sock: socket.socket) -> None:
        sock.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 7\r\nConnection: close\r\n\r\nplanted")
        sock.recv(1)

    with serving(answer_first) as server:
        port = lead(hostname("dgx", "hostile"), server.port)
        for name in (OWN, ELSEWHERE):
            assert REFUSED in read(chromium, f"http://{name}:{port}/")


def test_the_page_that_leads_a_confined_browser_answers_under_no_other_name(
    chromium: BrowserContext, jupyter: Site
) -> None:
    target = f"http://127.0.0.1:{jupyter.port}/?token=a"
    address = loopback_page.lend(target)
    assert address is not None
    for name in (ELSEWHERE, OWN):
        assert "421" in read(chromium, address.replace("127.0.0.1", name))
    assert jupyter.asked == []
    assert read(chromium, address) == "jupyter"
