"""`jlr forward --auto` forwards what begins to listen in a session, until it ends."""

from __future__ import annotations

from tests.jupyter.ports.parts import (
    end_inside,
    following,
    listed,
    serve_inside,
    told,
    web_server,
    word_at,
)
from tests.lab.containers import Container
from tests.lab.laptop import Laptop
from tests.lab.ports import free_port
from tests.lab.programs import wait_until
from tests.lab.sshd import SSHServer
from tests.link.desk import Desk
from tests.link.servers import HostServers, Squatter

# Web servers on all ports of a range, in one process.
FLOOD = """
import http.server, sys, threading
for port in range(*map(int, sys.argv[1:])):
    handler = http.server.SimpleHTTPRequestHandler
    server = http.server.ThreadingHTTPServer(("127.0.0.1", port), handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
threading.Event().wait()
"""
NO_PAGES = """
import socket
server = socket.create_server(("", 5000))
while True:
    server.accept()[0].sendall(b"SSH-2.0-a")
"""


def test_what_begins_to_listen_is_forwarded_and_opened_until_it_ends(
    laptop: Laptop, inside: Container
) -> None:
    serve_inside(inside, "before", "0.0.0.0", 7000)
    by_hand = told(laptop, inside.name, "7000")[0]["local_port"]
    with following(laptop, inside.name) as follower:
        follower.line("^7000 python3: it is forwarded already")
        serve_inside(inside, "scalars", "127.0.0.1")
        local = int(follower.line("^6006 python3 → ").rpartition(":")[2].strip("/\n"))
        assert word_at(local) == "scalars"
        wait_until(lambda: len(laptop.opened()) == 1, "its page")
        argv = ("python3", "-c", NO_PAGES)
        inside.engine.docker("exec", "--detach", inside.name, *argv)
        follower.line("^5000 python3 → ")
        web_server(inside, 8001, "--bind", inside.address)
        follower.line(f"^8001 http.server: it listens on {inside.address} only")
        end_inside(inside, "scalars")
        follower.line("^6006 python3: it has ended")
        assert word_at(local) is None
        assert {port["port"] for port in told(laptop)} == {5000, 7000}
    assert [port["local_port"] for port in told(laptop)] == [by_hand]
    assert len(laptop.opened()) == 1


def test_a_lost_connection_ends_nothing_and_what_came_meanwhile_is_found(
    desk: Desk, laptop: Laptop, inside: Container, sshd: SSHServer
) -> None:
    serve_inside(inside, "first", "127.0.0.1")
    with following(laptop, inside.name, "--no-browser") as follower:
        local = int(follower.line("^6006 python3 → ").rpartition(":")[2].strip("/\n"))
        sshd.stop()
        sshd.drop_connections()
        web_server(inside, 8000)
        sshd.start()
        follower.line("^8000 http.server → ")
        assert word_at(local) == "first"
        desk.process().kill()
        wait_until(lambda: not desk.processes(), "the link's end")
        web_server(inside, 8002)
        follower.line("^8002 http.server → ")
        assert word_at(local) == "first"
        assert not [line for line in follower.lines if "ended" in line]
    assert told(laptop) == []
    assert laptop.opened() == []


def test_the_end_of_the_session_ends_it(laptop: Laptop, inside: Container) -> None:
    with following(laptop, inside.name, status=6) as follower:
        serve_inside(inside, "scalars", "127.0.0.1")
        follower.line("^6006 python3 → ")
        inside.engine.docker("stop", "--time", "0", inside.name)
        follower.line("does not run")


def test_a_flood_gets_a_few_forwards_and_pages_and_one_line(
    laptop: Laptop, inside: Container
) -> None:
    with following(laptop, inside.name) as follower:
        argv = ("exec", "--detach", inside.name, "python3", "-c", FLOOD, "20000", "22000")
        inside.engine.docker(*argv)
        follower.line("no more than 20 are followed at once")
        wait_until(lambda: len(told(laptop)) == 20, "20 forwards")
        web_server(inside, 8000)
        assert len(listed(laptop, inside.name)) > 100
        wait_until(lambda: len(listed(laptop, inside.name)) > 800, "most of them")
        assert len(told(laptop)) == 20
    assert len(follower.lines) == 22
    assert 3 <= len(laptop.opened()) <= 6  # in one minute, or two
    assert told(laptop) == []


def test_without_a_container_another_users_program_is_neither_listed_nor_forwarded(
    desk: Desk, laptop: Laptop, servers: HostServers
) -> None:
    servers.start("one")
    desk.start("one")
    port, other = free_port(), free_port()
    squatter = Squatter(other)
    try:
        with following(laptop, "one") as follower:
            servers.start("two", port)
            follower.line(f"^{port} python3 → ")
            found = listed(laptop, "one")
            assert port in found
            assert other not in found
            servers.kill("two")
            follower.line(f"^{port} python3: it has ended")
            assert not [line for line in follower.lines if line.startswith(str(other))]
        assert squatter.visits == 0
    finally:
        squatter.close()
