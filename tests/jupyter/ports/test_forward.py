"""`jlr forward` on real containers: found, followed, proved, and gone with the session."""

from __future__ import annotations

import json
import socket

from jlremote.jupyter.endpoint import hostname
from jlremote.laptop import sessions
from tests.jupyter.ports.conftest import JUPYTER_PORT
from tests.jupyter.ports.parts import (
    PORT,
    end_inside,
    only,
    serve_inside,
    serving_on_host,
    state_of,
    told,
    word_at,
)
from tests.lab.accounts import Account
from tests.lab.containers import Container, ContainerFactory
from tests.lab.laptop import Laptop
from tests.lab.ports import free_port
from tests.lab.programs import PATIENCE
from tests.lab.sshd import SSHServer
from tests.link.desk import Desk
from tests.link.fakes import until
from tests.link.servers import HostServers, Squatter, start_inside


def test_a_program_that_starts_later_or_moves_is_reached_wherever_it_listens(
    laptop: Laptop, inside: Container
) -> None:
    closed = only(laptop, str(PORT))
    local = closed["local_port"]
    assert (closed["port"], closed["state"]) == (PORT, "closed")
    assert "nothing listens on port 6006" in closed["detail"]
    assert word_at(local) is None
    serve_inside(inside, "open", "0.0.0.0")
    until(lambda: word_at(local) == "open", "the word", timeout=PATIENCE)
    assert only(laptop)["state"] == "up"
    end_inside(inside, "open")
    until(lambda: word_at(local) is None, "the end of the first")
    serve_inside(inside, "hidden", "127.0.0.1")
    until(lambda: word_at(local) == "hidden", "the second", timeout=PATIENCE)


def test_a_taken_local_port_is_replaced_by_the_next_one_which_is_kept(
    laptop: Laptop, inside: Container
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as squatter:
        port = squatter.getsockname()[1]
        result = laptop.jlr("forward", str(port))
        local = only(laptop)["local_port"]
        assert local > port
        assert result.stdout == f"http://127.0.0.1:{local}/\n"
        assert f"port {port} is in use by" in result.stderr
        exact = free_port()
        moved = laptop.jlr("forward", f"{exact}:{port}")
        assert moved.stdout == f"http://127.0.0.1:{exact}/\n", moved
        refused = laptop.jlr("forward", inside.name, f"{port}:{port}")
        assert refused.status == 7, refused
        assert f"`jlr forward lab/{inside.name} {port}` takes a free one" in refused.stderr
    assert only(laptop)["local_port"] == exact != local
    assert only(laptop, str(port))["local_port"] == exact


def test_it_comes_back_after_a_drop_a_killed_link_and_a_restart_of_its_container(
    desk: Desk, laptop: Laptop, inside: Container, sshd: SSHServer
) -> None:
    serve_inside(inside, "scalars", "127.0.0.1")
    local = only(laptop, str(PORT))["local_port"]
    assert word_at(local) == "scalars"
    sshd.drop_connections()
    assert word_at(local) == "scalars"
    sshd.stop()
    try:
        away = only(laptop)
        assert (away["port"], away["state"]) == (PORT, "reconnecting")
        assert away["since"] is not None
        assert "refused" in away["detail"]
    finally:
        sshd.start()
    end_jupyter = "kill $(ls /tmp/jlr-0/*/runtime | tr -dc '0-9\\n')"
    for meanwhile in (":", end_jupyter):
        inside.execute("sh", "-c", meanwhile)
        desk.process().kill()
        until(lambda: not desk.processes(), "the link's end")
        until(lambda: only(laptop)["state"] == "up", f"the port's return after `{meanwhile}`")
        assert only(laptop)["local_port"] == local
        assert word_at(local) == "scalars"
    inside.engine.docker("restart", "--time", "0", inside.name)
    start_inside(inside, JUPYTER_PORT)
    serve_inside(inside, "again", "127.0.0.1")
    desk.start(inside.name, "docker")
    assert only(laptop)["local_port"] == local
    assert word_at(local) == "again"


def test_another_container_of_that_name_gets_nothing(
    desk: Desk, laptop: Laptop, inside: Container, sshd: SSHServer
) -> None:
    serve_inside(inside, "mine", "0.0.0.0")
    local = only(laptop, str(PORT))["local_port"]
    engine = inside.engine
    engine.docker("rm", "--force", inside.name)
    run = ("run", "--detach", "--init", "--name", inside.name, "lab/plain", "sleep", "infinity")
    engine.docker(*run)
    serve_inside(inside, "another", "0.0.0.0")
    sshd.drop_connections()
    until(lambda: state_of(desk, inside.name) == "container-gone", "the verdict")
    assert word_at(local) is None


def test_a_port_of_the_host_leads_to_ones_own_program_a_service_or_what_is_published(
    desk: Desk, laptop: Laptop, inside: Container, account: Account, container: ContainerFactory
) -> None:
    port, published = free_port(), free_port()
    serve_inside(inside, "inside", "127.0.0.1", port)
    with serving_on_host(account, "mine", port):
        mine = only(laptop, inside.name, str(port), "--host")
        assert (mine["state"], mine["on_host"]) == ("up", True)
        assert word_at(mine["local_port"]) == "mine"
    another = container("lab/plain", options=("--publish", f"127.0.0.1:{published}:{PORT}"))
    serve_inside(another, "published", "0.0.0.0")
    shown = laptop.jlr("forward", inside.name, str(published), "--host")
    assert word_at(int(shown.stdout.rstrip("/\n").rpartition(":")[2])) == "published", shown
    assert f"{published} of the host" in laptop.jlr("forward").stdout
    desk.process().kill()
    until(lambda: not desk.processes(), "the link's end")
    both = {one["port"]: one["local_port"] for one in told(laptop)}
    assert word_at(both[published]) == "published"
    restarted = laptop.jlr("start", "lab", inside.name, "--no-browser")
    assert restarted.status == 0, restarted
    assert [one["on_host"] for one in told(laptop)] == [True, True]
    assert word_at(both[published]) == "published"
    with serving_on_host(account, "again", port):
        until(lambda: word_at(both[port]) == "again", "the program's return", timeout=PATIENCE)


def test_on_the_hosts_network_only_the_containers_own_program_is_led_to(
    desk: Desk, laptop: Laptop, container: ContainerFactory
) -> None:
    jupyter, port, other = free_port(), free_port(), free_port()
    here = container("lab/plain", options=("--network", "host"))
    start_inside(here, jupyter)
    desk.start(here.name, "docker")
    squatter = Squatter(other)
    try:
        assert only(laptop, str(other))["state"] == "taken"
        assert squatter.visits == 0
    finally:
        squatter.close()
    laptop.jlr("forward", "--remove", str(other))
    serve_inside(here, "mine", "127.0.0.1", port)
    mine = only(laptop, str(port))
    assert mine["state"] == "up"
    assert word_at(mine["local_port"]) == "mine"


def test_several_are_forwarded_recorded_as_ports_alone_kept_and_removed(
    laptop: Laptop, inside: Container
) -> None:
    one, two = sorted((free_port(), free_port()))
    serve_inside(inside, "x", "0.0.0.0", one)
    words = ("start", "lab", inside.name, "--no-browser")
    started = laptop.jlr(*words, "--forward", str(one), "--forward", str(two))
    addresses = [f"http://127.0.0.1:{port}/" for port in (one, two)]
    assert started.stdout.splitlines()[1:] == addresses, started
    again = json.loads(laptop.jlr(*words, "--json").stdout)
    assert [port["port"] for port in again["ports"]] == [one, two]
    listed = json.loads(laptop.jlr("list", inside.name, "--json").stdout)
    assert [port["state"] for port in listed["ports"]] == ["up", "closed"]
    assert word_at(one, hostname("lab", inside.name, one)) == "x"
    for name in (hostname("lab", inside.name), "evil.example"):
        assert word_at(one, name) is None
    [record] = (laptop.folder / "state" / "jlr" / "sessions").glob("*.json")
    kept = [
        {"port": port, "local_port": port, "on_host": False, "auto": False} for port in (one, two)
    ]
    assert json.loads(record.read_text())["ports"] == kept
    row = laptop.jlr("forward").stdout.split("\n")[1].split()[:3]
    assert row == [str(one), f"http://127.0.0.1:{one}/", "up"]
    assert laptop.jlr("forward", "--remove", str(two)).status == 0
    removed = laptop.jlr("forward", "--remove", str(one))
    assert (removed.status, removed.stdout) == (0, "")
    assert told(laptop) == []
    socket.create_server(("127.0.0.1", one)).close()
    assert laptop.jlr("forward", "--remove", str(one)).status == 6
    text = json.dumps({**json.loads(record.read_text()), "ports": [{**kept[0], "port": "6006"}]})
    record.write_text(text)
    assert sessions.load_all() == []


def test_without_a_container_only_ones_own_program_is_led_to_and_its_successor_is_sent_nothing(
    desk: Desk, laptop: Laptop, servers: HostServers
) -> None:
    servers.start("one")
    desk.start("one")
    port, other = free_port(), free_port()
    squatter = Squatter(other)
    try:
        taken = only(laptop, str(other))
        assert taken["state"] == "taken"
        assert f"another user's program listens on port {other}" in taken["detail"]
        assert word_at(taken["local_port"]) is None
        assert squatter.visits == 0
    finally:
        squatter.close()
    assert laptop.jlr("forward", "--remove", str(other)).status == 0
    servers.start("two", port)
    mine = only(laptop, str(port))
    assert mine["state"] == "up"
    servers.kill("two")
    squatter = Squatter(port)
    try:
        assert word_at(mine["local_port"]) is None
        assert squatter.heard == b""
    finally:
        squatter.close()
