"""After a reconnect only the session's own server is sent anything."""

from __future__ import annotations

import socket
from collections.abc import Callable

import pytest

from tests.lab.containers import Container, ContainerFactory
from tests.lab.sshd import SSHServer
from tests.link.desk import Desk
from tests.link.fakes import until
from tests.link.servers import HostServers, Squatter, start_inside
from tests.outages.parts import within

PAGE_LOAD = b"GET /lab HTTP/1.1\r\nHost: 127.0.0.1:%d\r\nAccept: text/html\r\n\r\n"
PORT = 8888


def asked(port: int, request: bytes) -> bytes:
    """Send a request, with the port to be filled in, and return all that comes back."""
    with socket.create_connection(("127.0.0.1", port), timeout=20) as sock:
        sock.sendall(request % port)
        answer = b""
        try:
            while data := sock.recv(65536):
                answer += data
        except ConnectionResetError:
            pass
        return answer


def check_turned_away(desk: Desk, name: str, state: str, detail: str) -> None:
    """Wait for the state; then a browser is told it, and anything else is turned away."""
    until(lambda: desk.forward(name).state == state, f"the state {state}")
    forward = desk.forward(name)
    assert detail in (forward.detail or "")
    pages: list[bytes] = []

    def told() -> bytes:
        # One that is turned away before it has said a word is only hung up on.
        pages.append(asked(forward.local_port, PAGE_LOAD))
        return pages[-1]

    until(told, "the page for a browser")
    assert pages[-1].startswith(b"HTTP/1.1 503 ")
    assert detail.encode() in pages[-1]
    assert asked(forward.local_port, b"PUT /api HTTP/1.1\r\nHost: 127.0.0.1:%d\r\n\r\n") == b""


@pytest.fixture
def inside(desk: Desk, container: ContainerFactory) -> Container:
    """A container with a session."""
    made = container("lab/plain")
    start_inside(made, PORT)
    desk.start(made.name, "docker")
    return made


def replace(container: Container) -> None:
    engine = container.engine
    engine.docker("rm", "--force", container.name)
    argv = ("run", "--detach", "--init", "--name", container.name, "lab/plain")
    engine.docker(*argv, "sleep", "infinity")


def restart(container: Container) -> None:
    container.engine.docker("restart", "--time", "0", container.name)


@pytest.mark.parametrize(
    ("happens", "state", "told"),
    [
        (replace, "container-gone", "is gone: it was removed"),
        (restart, "restarted", "was restarted"),
    ],
)
def test_a_container_that_replaced_the_sessions_gets_nothing(
    happens: Callable[[Container], None],
    state: str,
    told: str,
    desk: Desk,
    sshd: SSHServer,
    inside: Container,
) -> None:
    happens(inside)
    start_inside(inside, PORT)
    with within(15):
        sshd.drop_connections()
        check_turned_away(desk, inside.name, state, told)


def test_a_missing_container_is_reported(desk: Desk, sshd: SSHServer, inside: Container) -> None:
    inside.engine.docker("rm", "--force", inside.name)
    sshd.drop_connections()
    check_turned_away(desk, inside.name, "container-gone", "is gone")


def test_after_a_restart_a_new_start_serves_the_same_port(
    desk: Desk, sshd: SSHServer, inside: Container
) -> None:
    port = desk.forward(inside.name).local_port
    restart(inside)
    sshd.drop_connections()
    until(lambda: desk.forward(inside.name).state == "restarted", "the verdict")
    start_inside(inside, PORT)
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


def test_a_dead_server_is_reported(desk: Desk, sshd: SSHServer, port_of_the_dead: int) -> None:
    with within(15):
        sshd.drop_connections()
        check_turned_away(desk, "one", "jupyter-dead", "is gone")


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
