"""Another user of the host takes the port of a server that has just ended."""

from __future__ import annotations

import socket
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack

import pytest

from jlremote.errors import JlrError
from jlremote.place.host.addresses import Target
from jlremote.ssh.forward.connection_router import WaitLimits
from tests.lab.accounts import claimed_account
from tests.lab.containers import ContainerFactory
from tests.lab.ports import free_port
from tests.link.desk import Desk, asked, check_turned_away
from tests.link.servers import HostServers, Squatter, start_inside
from tests.ssh.forward.parts import PAGE, is_closed
from tests.ssh.forward.parts import Desk as Router

SECRET = b"GET /cont1/lab HTTP/1.1\r\nHost: localhost:8888\r\nCookie: secret\r\n\r\n"
ANSWER = b"HTTP/1.1 200 OK\r\n\r\n<script>"
PUT = b"PUT /one/api/contents/a.ipynb HTTP/1.1\r\nHost: localhost:%d\r\nCookie: a=b\r\n\r\n"

# Waits until the port is free, answers everybody on it, and prints what it is sent.
LURKS = """
import contextlib, socket, sys, time
print("waits", flush=True)
while True:
    try:
        listener = socket.create_server(("127.0.0.1", int(sys.argv[1])))
        break
    except OSError:
        time.sleep(0.01)
print("has the port", flush=True)
while True:
    visitor, _ = listener.accept()
    print("a visit", flush=True)
    with visitor, contextlib.suppress(OSError):
        visitor.sendall(b"HTTP/1.1 200 OK\\r\\n\\r\\n<script>")
        while data := visitor.recv(65536):
            print("was sent", data, flush=True)
"""


@pytest.fixture
def router() -> Iterator[Router]:
    """A forward that leads to a port of the host's own loopback."""
    made = Router(WaitLimits(connection=5, page_load=5))
    made.gateway.target = Target("127.0.0.1", 8888)
    yield made
    made.router.close()
    for client in made.clients:
        client.close()
    made.loop.close()


def opened(router: Router, said: bytes) -> socket.socket:
    """Return a client whose connection the program on the port has accepted and answered."""
    client = router.connect(said)
    router.channel()._set_remote_channel(3, 1000, 1000)
    router.channel()._take(memoryview(ANSWER))
    router.turn()
    return client


def test_a_port_that_others_can_take_gets_no_byte_before_a_newer_proof(router: Router) -> None:
    client = opened(router, SECRET)
    assert len(router.transport.sent) == 1  # the request to connect
    client.setblocking(False)
    with pytest.raises(BlockingIOError):
        client.recv(1)
    router.gateway.proofs.put(None)
    router.turn_until(lambda: len(router.transport.sent) == 2)
    assert router.transport.sent[-1].endswith(SECRET)
    router.turn()
    assert client.recv(100) == ANSWER


def test_a_session_s_own_socket_needs_no_newer_proof(router: Router) -> None:
    router.gateway.target = Target("", 0, path="/home/ada/sock")
    client = opened(router, SECRET)
    router.turn_until(lambda: len(router.transport.sent) == 2)
    opening, said = router.transport.sent
    assert b"direct-streamlocal@openssh.com" in opening
    assert said.endswith(SECRET)
    assert client.recv(100) == ANSWER


def test_who_has_taken_the_port_reads_nothing_and_says_nothing(router: Router) -> None:
    browser = opened(router, PAGE)
    router.gateway.proofs.put(
        JlrError("the Jupyter server of `cont1` is gone", state="jupyter-dead")
    )
    router.turn_until(lambda: not router.router._bridges)
    told = browser.recv(100000)
    assert b"is gone" in told
    assert ANSWER not in told
    assert b"GET" not in b"".join(router.transport.sent)


def test_a_proof_counts_only_for_connections_that_it_found_open(router: Router) -> None:
    opened(router, SECRET)
    late = router.connect(SECRET)
    _, second = router.transport._channels.values()
    router.gateway.proofs.put(None)
    router.turn_until(lambda: len(router.transport.sent) == 3)
    second._set_remote_channel(4, 1000, 1000)
    router.turn()
    assert len(router.transport.sent) == 3
    router.gateway.proofs.put(JlrError("the far end changed"))
    router.turn_until(lambda: is_closed(late))


def test_another_user_on_the_port_gets_no_byte_while_the_link_stays_up(
    desk: Desk, servers: HostServers
) -> None:
    servers.start("one")
    desk.start("one")
    forward = desk.forward("one")
    assert desk.server_pid(forward) > 0
    servers.kill("one")
    squatter = Squatter(forward.server.port)
    try:
        assert asked(forward.local_port, PUT) == b""
        check_turned_away(desk, "one", "jupyter-dead", "is gone")
        assert squatter.visits > 0
        assert squatter.heard == b""
    finally:
        squatter.close()


def test_another_user_waits_for_the_port_of_a_container_on_the_hosts_network(
    desk: Desk, container: ContainerFactory
) -> None:
    port = free_port()
    here = container("lab/plain", options=("--network", "host"))
    start_inside(here, port, "127.0.0.1")
    desk.start(here.name, "docker")
    forward = desk.forward(here.name)
    argv = ("python3", "-c", LURKS, str(port))
    with claimed_account() as hostile, ExitStack() as stack:
        lurking = stack.enter_context(
            subprocess.Popen(
                argv, user=hostile.uid, extra_groups=(), cwd="/", stdout=subprocess.PIPE, text=True
            )
        )
        stack.callback(lurking.kill)
        assert lurking.stdout is not None
        assert lurking.stdout.readline() == "waits\n"
        here.execute("sh", "-c", f"kill -9 {desk.server_pid(forward)}")
        assert lurking.stdout.readline() == "has the port\n"
        assert asked(forward.local_port, PUT) == b""
        check_turned_away(desk, here.name, "jupyter-dead", "is gone")
        lurking.kill()
        assert {*lurking.stdout} == {"a visit\n"}
