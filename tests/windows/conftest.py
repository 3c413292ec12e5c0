"""One laptop with Windows, and one session, for all tests of a file."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from tests.lab import windows
from tests.lab.accounts import Account
from tests.lab.containers import ContainerFactory
from tests.lab.line import Line
from tests.lab.place import LabError, Say
from tests.lab.ports import free_port
from tests.lab.remote_host import Keys
from tests.lab.sshd import SSHServer
from tests.lab.windows import WindowsLaptop, windows_laptop
from tests.windows.parts import WindowsSession, succeeded


@pytest.fixture(scope="module")
def way(sshd: SSHServer) -> Iterator[Line]:
    """The network to the host, which can be cut and down."""
    line = Line(sshd.port)
    yield line
    line.close()


@pytest.fixture(scope="module")
def laptop(
    sshd: SSHServer, account: Account, keys: Keys, way: Line, say: Say
) -> Iterator[WindowsLaptop]:
    """Windows, whose person knows the host as `lab`."""
    if reasons := windows.missing():
        pytest.skip("; ".join(reasons))
    try:
        windows.ensure(say)
    except LabError as failure:
        pytest.skip(f"Debian's Wine and Python's wheels cannot be had here: {failure}")
    with windows_laptop(keys.private, say) as made:
        made.add_host("lab", sshd, account, way.port)
        yield made


@pytest.fixture(scope="module")
def session(laptop: WindowsLaptop, containers: ContainerFactory) -> WindowsSession:
    """A session that `jlr start` has begun, in a container that it has made."""
    name = containers.name()
    words = ("--image", "lab/jupyter", "--port", str(free_port()), "--json", "--no-browser")
    report = succeeded(laptop.jlr("start", "lab", name, *words, timeout=180))
    return WindowsSession(laptop, json.loads(report))
