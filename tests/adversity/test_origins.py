"""A hostile page in the browser reaches for the cookie and the pages of another session."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import BrowserContext

from jlremote.forwards import local_ports
from jlremote.forwards.address import Address, address_of, report
from jlremote.jupyter.endpoint import Endpoint, hostname
from jlremote.laptop.sessions import PortOwner, PortRecord, SessionRecord
from jlremote.link.wire.states import ForwardStatus
from jlremote.place.host.addresses import own_address
from tests.adversity.sites import ASK, REGISTER, Site, opened, site
from tests.link.fakes import new_endpoint, new_server

SECRET, PLANTED = "login=jupyter", "planted=1"
PLANT = """() => {
  for (const where of ['', '; domain=localhost', '; domain=cont1-dgx.localhost'])
    document.cookie = 'planted=1; path=/' + where
}"""


def address(session: str, served: Site, name: str | None = None) -> Address:
    """Return what `jlr start` gives a browser for a session; `name` is what its server accepts."""
    server = replace(new_server(), base_url=served.base)
    to = Endpoint(new_endpoint().place, 8888, server)
    forward = ForwardStatus(session, None, served.port, "up", 0.0, None, to, None)
    return address_of(forward, name or hostname("dgx", session))


def logged_in(chromium: BrowserContext, url: str, jupyter: Site) -> str:
    """Open a session as a person does; return its address without the token."""
    opened(chromium, url)
    plain = url.partition("?")[0]
    opened(chromium, plain)
    assert jupyter.was_sent(SECRET)
    jupyter.asked.clear()
    return plain


def further_port(session: str, served: Site) -> Address:
    """Return what `jlr forward` gives a browser for a program beside a session's server."""
    record = SessionRecord("dgx", session, "docker", 8888)
    return report(record, PortRecord(6006, served.port), None).address


def test_a_page_elsewhere_does_not_have_the_cookie_sent(
    chromium: BrowserContext, hostile: Site, jupyter: Site
) -> None:
    """The page is of another session, or of a program beside the session's own server."""
    plain = logged_in(chromium, address("cont1", jupyter).page, jupyter)
    there = urlsplit(plain)
    for elsewhere in (address("hostile", hostile), further_port("cont1", hostile)):
        page = opened(chromium, elsewhere.page)
        for netloc in (
            urlsplit(page.url).netloc,  # as if it had that path, too
            f"127.0.0.1:{hostile.port}",
            f"{there.hostname}:{hostile.port}",
            there.netloc,
            f"127.0.0.1:{jupyter.port}",
        ):
            page.evaluate(ASK, there._replace(netloc=netloc).geturl())
    for asked in (hostile, jupyter):
        assert sum(request.path == there.path for request in asked.asked) >= 24
        assert not asked.was_sent(SECRET)
    opened(chromium, plain)
    assert jupyter.was_sent(SECRET), "the session's own page has lost it"


def test_a_server_of_another_configuration_has_an_address_of_its_own(
    chromium: BrowserContext, hostile: Site
) -> None:
    """It accepts no name, and anyone can guess the path of its cookie."""
    with site("jupyter", base="/theirs/") as theirs:
        page = address("cont1", theirs, own_address(theirs.port)).page
        plain = logged_in(chromium, page, theirs)
        there = urlsplit(plain)
        for own in (hostname("dgx", "hostile"), own_address(hostile.port), "127.0.0.1"):
            elsewhere = opened(chromium, f"http://{own}:{hostile.port}/")
            for name in (there.hostname, own):
                for port in (theirs.port, hostile.port):
                    url = there._replace(netloc=f"{name}:{port}").geturl()
                    elsewhere.evaluate(ASK, url)
        assert not hostile.was_sent(SECRET)
        assert not theirs.was_sent(SECRET)
        opened(chromium, plain)
        assert theirs.was_sent(SECRET), "the session's own page has lost it"


def test_another_sessions_page_cannot_set_its_cookies(
    chromium: BrowserContext, hostile: Site, jupyter: Site
) -> None:
    plain = logged_in(chromium, address("cont1", jupyter).page, jupyter)
    hostile.headers += [
        ("Set-Cookie", f"planted=1; Path={path}{domain}")
        for path in ("/", jupyter.base)
        for domain in ("", "; Domain=localhost", f"; Domain={urlsplit(plain).hostname}")
    ]
    page = opened(chromium, address("hostile", hostile).page)
    page.evaluate(PLANT)
    page.reload()
    assert hostile.was_sent(PLANTED)
    opened(chromium, plain)
    assert jupyter.was_sent(SECRET)
    assert not jupyter.was_sent(PLANTED)


def test_the_path_keeps_the_cookie_from_other_ports_of_the_same_name(
    chromium: BrowserContext, hostile: Site, jupyter: Site
) -> None:
    """Safari has no other name; any browser is sent to one's own by a link of a hostile page."""
    both = address("cont1", jupyter)
    for own in (both.url, both.page):
        logged_in(chromium, own, jupyter)
        for path in ("", "/cont1/lab", "/cont1-0000000000000000/lab"):
            url = f"http://{urlsplit(own).hostname}:{hostile.port}{path}"
            opened(chromium, url).evaluate(ASK, url)
    assert not hostile.was_sent(SECRET)


def leave_service_worker(chromium: BrowserContext, url: str) -> None:
    """Have a hostile page leave a program in the browser that answers for its origin."""
    page = opened(chromium, url)
    page.evaluate(REGISTER)
    page.reload()
    assert page.inner_text("body") == "of the service worker"


def test_a_service_worker_of_another_session_does_not_get_the_page_on_its_port(
    chromium: BrowserContext, jupyter: Site
) -> None:
    with site("hostile") as hostile:
        leave_service_worker(chromium, address("hostile", hostile).page)
    with site("jupyter", hostile.port, jupyter.base) as later:
        for one in (jupyter, later):
            page = opened(chromium, address("cont1", one).page)
            assert page.inner_text("body") == "jupyter"


def test_a_service_worker_under_the_sessions_own_name_does_not_get_its_page(
    chromium: BrowserContext, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """A hostile page sends the browser to its own port under the other session's name."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    with site("hostile") as hostile:
        monkeypatch.setattr(local_ports, "FIRST_PORT", hostile.port)
        local_ports.claim(PortOwner(hostile.port, "dgx", "hostile", None), ExitStack())
        leave_service_worker(chromium, address("cont1", hostile).page)
    port = local_ports.first_candidate("dgx", "cont1")
    with site("jupyter", port) as jupyter:
        page = opened(chromium, address("cont1", jupyter).page)
        assert page.inner_text("body") == "jupyter"
