"""After a reconnect only the session's own server is sent anything."""

from __future__ import annotations

import pytest

from tests.lab.containers import Container, ContainerFactory
from tests.lab.sshd import SSHServer
from tests.link.desk import Desk, check_turned_away
from tests.link.servers import HostServers, Squatter, start_inside
from tests.outages.parts import within

PORT = 8888


@pytest.fixture
def inside(desk: Desk, container: ContainerFactory) -> Container:
    made = container("lab/plain")
    start_inside(made, PORT)
    desk.start(made.name, "docker")
    return made


def replace(container: Container) -> None:
    engine = container.engine
    engine.docker("rm", "--force", container.name)
    argv = ("run", "--detach", "--init", "--name", container.name, "lab/plain")
    engine.docker(*argv, "sleep", "infinity")


def test_a_container_that_replaced_the_sessions_gets_nothing(
    desk: Desk, sshd: SSHServer, inside: Container
) -> None:
    replace(inside)
    start_inside(inside, PORT)
    with within(15):
        sshd.drop_connections()
        check_turned_away(desk, inside.name, "container-gone", "is gone: it was removed")


def test_after_a_restart_a_new_start_serves_the_same_port(
    desk: Desk, sshd: SSHServer, inside: Container
) -> None:
    port = desk.forward(inside.name).local_port
    inside.engine.docker("restart", "--time", "0", inside.name)
    start_inside(inside, PORT)
    sshd.drop_connections()
    check_turned_away(desk, inside.name, "restarted", "was restarted")
    assert desk.start(inside.name, "docker").local_port == port
    assert desk.server_pid(desk.forward(inside.name)) > 0


@pytest.fixture
def port_of_the_dead(desk: Desk, servers: HostServers) -> int:
    """The port of a server on the host that was forwarded, and has ended."""
    servers.start("one")
    desk.start("one")
    port = desk.forward("one").server.port
    servers.kill("one")
    return port


def test_another_users_server_on_the_port_is_sent_nothing(
    desk: Desk, sshd: SSHServer, port_of_the_dead: int
) -> None:
    squatter = Squatter(port_of_the_dead)
    try:
        sshd.drop_connections()
        check_turned_away(desk, "one", "jupyter-dead", "is gone")
        assert squatter.visits == 0
    finally:
        squatter.close()


def test_another_server_of_the_same_session_on_the_same_port_is_not_taken_for_it(
    desk: Desk, sshd: SSHServer, servers: HostServers, port_of_the_dead: int
) -> None:
    servers.start("one", port_of_the_dead)
    sshd.drop_connections()
    check_turned_away(desk, "one", "jupyter-dead", "is gone")
