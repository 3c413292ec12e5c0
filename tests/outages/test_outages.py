"""After any outage the page is back in time, and the kernel has noticed nothing."""

from __future__ import annotations

import subprocess
import time

import psutil
import pytest

from jlremote.link.connection.backoff import STEADY_SECONDS
from tests.lab.laptop import Laptop
from tests.lab.network import Network
from tests.lab.programs import lives
from tests.lab.sshd import SSHServer, end
from tests.link.fakes import until
from tests.long import LONG
from tests.outages.parts import BUSY, Work, link_of, sshd_of

# What the host's settings above allow until a silent death is noticed.
NOTICED = 4.0
BACK = 2.0
# Some connections in a row that did not last are followed by longer pauses.
LASTED = STEADY_SECONDS + 0.2


@pytest.fixture
def laptop(file_laptop: Laptop) -> Laptop:
    return file_laptop


@pytest.fixture
def work(lasting_work: Work) -> Work:
    """The kernel, over a connection that has lasted, and whose sshd the link knows."""
    since = time.monotonic()
    until(lambda: time.monotonic() - since > LASTED, "a connection that has lasted")
    until(lambda: sshd_of(lasting_work.session.laptop), "the link's look at its sshd")
    lasting_work.check()
    return lasting_work


def test_stopping_the_connections_sshd(work: Work, sshd: SSHServer) -> None:
    frozen = sshd.sessions()
    sshd.freeze_connections()
    try:
        work.comes_back(NOTICED + BACK)
    finally:
        end(frozen)


@pytest.mark.timeout(600)
@pytest.mark.parametrize("seconds", [5, LONG(20), LONG(300)])
def test_a_link_of_the_network_that_is_down(work: Work, network: Network, seconds: float) -> None:
    network.take_down()
    time.sleep(seconds)
    network.bring_up()
    work.comes_back(BACK)


def test_another_address_of_the_laptop(work: Work, laptop: Laptop, network: Network) -> None:
    """Jupyter learns at once that the old WebSocket is gone: the next connection ends its sshd."""
    old = psutil.Process(sshd_of(laptop))
    argv = ("ssh", "-F", str(laptop.ssh_config), "lab", "echo in; cat")
    with (
        subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as other,
        work.kernel.reached_anew(),
    ):
        assert other.stdout is not None
        assert other.stdout.readline() == b"in\n"
        network.change_address()
        work.comes_back(NOTICED + BACK)
        until(lambda: not lives(old), "the end of the old sshd")
        kernel = f"api/kernels/{work.kernel.id}"
        until(lambda: work.session.ask(kernel)["connections"] == 0, "the end of the old WebSocket")
        assert other.communicate(b"still there")[0] == b"still there"


def test_a_restart_of_sshd(work: Work, sshd: SSHServer) -> None:
    sshd.restart()
    work.comes_back(BACK)


@pytest.mark.parametrize("seconds", [LONG(1), 6])
def test_a_link_that_was_stopped_and_wakes(work: Work, laptop: Laptop, seconds: float) -> None:
    link = link_of(laptop)
    link.suspend()
    time.sleep(seconds)
    link.resume()
    work.comes_back(BACK)


def test_a_link_that_slept_through_the_end_of_its_connection(
    work: Work, laptop: Laptop, sshd: SSHServer
) -> None:
    link = link_of(laptop)
    link.suspend()
    sshd.drop_connections()
    link.resume()
    work.comes_back(BACK)


@pytest.mark.timeout(900)
@pytest.mark.parametrize("drops", [5, LONG(20), LONG(100)])
def test_nineteen_in_twenty_drops_are_over_in_two_seconds(
    work: Work, sshd: SSHServer, drops: int
) -> None:
    away = []
    for _ in range(drops):
        sshd.drop_connections()
        away.append(work.seconds_away(30))
        # The next one hits a connection that has lasted, as drops do; one that ends at once, and
        # the third loss within seconds, rightly have a pause.
        back = time.monotonic()
        until(lambda since=back: time.monotonic() - since > LASTED, "some seconds")  # type: ignore[misc]
    away.sort()
    assert away[drops * 95 // 100 - 1] <= BACK * BUSY, away[-5:]
    work.check()
