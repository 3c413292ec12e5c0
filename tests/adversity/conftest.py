"""People, hosts and sites for attacks."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from playwright.sync_api import BrowserContext

from tests.adversity.sites import Site, site
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
