"""People, hosts and sites for attacks."""

from __future__ import annotations

import io
import random
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import psutil
import pytest
from playwright.sync_api import BrowserContext

from jlremote.agents import mcp_server
from jlremote.errors import ConnectionRefused
from jlremote.link.client import call
from jlremote.link.client.link import Link
from jlremote.link.wire.states import LinkStatus
from jlremote.place.host.contract import Completed, Steps
from tests.adversity.parts import answer
from tests.adversity.sites import Site, site
from tests.cli.conftest import remember
from tests.forward.conftest import forward_key, forward_sshd, transport
from tests.link.conftest import desk, servers

__all__ = ["desk", "forward_key", "forward_sshd", "servers", "transport"]


@pytest.fixture
def chromium(file_chromium: BrowserContext) -> BrowserContext:
    """A browser without cookies; what pages left in it is of other ports."""
    file_chromium.clear_cookies()
    return file_chromium


@pytest.fixture
def hostile() -> Iterator[Site]:
    """The program behind the forward of the session `dgx/hostile`."""
    with site("hostile") as served:
        yield served


@pytest.fixture
def jupyter() -> Iterator[Site]:
    """The server of the session `dgx/cont1`, which sets its cookie for the path that ours have."""
    with site("jupyter", base="/cont1-0123456789abcdef/") as served:
        yield served


@pytest.fixture
def no_host_answers(laptop: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Know a session, whose host refuses every connection at once; no link begins."""

    def refuse(*_: object, **__: object) -> None:
        raise ConnectionRefused("nothing listens on port 22 of `dgx`")

    monkeypatch.setattr(call, "begin", refuse)
    monkeypatch.setattr(mcp_server, "serve", refuse)  # which reads stdin to its end
    remember(("dgx", "cont1"))
    here = laptop / "here"
    here.mkdir()
    monkeypatch.chdir(here)
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO()))  # with its `buffer`
    yield
    for child in psutil.Process().children():
        with suppress(psutil.Error):
            assert "jlremote.link" not in child.cmdline()


@pytest.fixture
def draw(no_host_answers: None, monkeypatch: pytest.MonkeyPatch) -> random.Random:
    """Be connected to a host that answers what is drawn."""
    chance = random.Random()

    def run(self: Link, steps: Steps, **_: object) -> dict[str, Completed]:
        if chance.random() < 0.05:
            raise ConnectionRefused("nothing listens")
        statuses = (0, 0, 0, 0, 1, 2, 125, 126, 127, 255)
        return {
            name: Completed(chance.choice(statuses), answer(chance), answer(chance))
            for name in steps
        }

    def status(self: Link, **_: object) -> LinkStatus:
        return LinkStatus("up", time.time(), None, (), ())

    monkeypatch.setattr(Link, "run", run)
    monkeypatch.setattr(Link, "status", status)
    return chance
