"""The way to a server or to a further port, as it is chosen from what listens there."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from jlremote.errors import JlrError
from jlremote.jupyter import locate
from jlremote.jupyter.endpoint import Endpoint, Server
from jlremote.jupyter.locate import server_endpoint
from jlremote.place.host.addresses import Target
from jlremote.place.host.contract import OUTPUT_BYTES, SCRIPT_SECONDS, Completed, Steps
from jlremote.place.runtimes import table
from jlremote.place.runtimes.engine.kinds import DOCKER
from jlremote.place.runtimes.engine_containers import Containers
from jlremote.place.runtimes.processes import Bare
from jlremote.place.runtimes.runtime import Container
from jlremote.place.runtimes.scripts.waiting import AS_MAIN_USER
from tests.jupyter.ports.parts import probed
from tests.link.fakes import new_endpoint, new_server
from tests.place.host.parts import ANYWHERE, ANYWHERE_6, LOOPBACK, LOOPBACK_6, row

PORT = 6006
NETWORK = "5ea"
ELSEWHERE = "050011AC"  # 172.17.0.5
PLACE = new_endpoint().place
RELAY = ("docker", "exec", "--interactive", "cont1", "/usr/bin/python3")


class HostThatSays:
    """A host on which the probe prints what the test says."""

    name = "dgx"

    def __init__(self, output: str) -> None:
        self._output = output

    def run(
        self, steps: Steps, *, timeout: float = SCRIPT_SECONDS, limit: int = OUTPUT_BYTES
    ) -> dict[str, Completed]:
        return {"container": Completed(0, "", ""), "inside": Completed(0, self._output, "")}


class RuntimeThatKnows:
    """A runtime with one container."""

    def __init__(self, addresses: tuple[str, ...], *, engine: bool, alone: bool) -> None:
        self.name, self.has_containers = PLACE.runtime_name, engine
        self.servers_folder, self.in_jobs = "/tmp/jlr-0", False
        self._addresses, self._alone = addresses, alone

    def read(self, name: str, results: Mapping[str, Completed]) -> Container:
        facts = (PLACE.container_id, PLACE.name, True, PLACE.started_at)
        alone = dict.fromkeys(self._addresses[:1], NETWORK) if self._alone else {}
        return Container(*facts, addresses=self._addresses, alone_on=alone)

    def describe(self, name: str) -> Steps:
        return {}

    def survey(self, name: str, inside: str) -> Steps:
        return {}

    def on_machine(self, name: str, script: str) -> str:
        return script

    def relay_prefix(self, name: str) -> tuple[str, ...]:
        return RELAY[:-1]


def target(
    monkeypatch: pytest.MonkeyPatch,
    output: str,
    *addresses: str,
    engine: bool = True,
    on_host: bool = False,
    in_jobs: bool = False,
    alone: bool = True,
) -> Target | None:
    """Return where the port is found of a container with these addresses."""
    runtime = RuntimeThatKnows(addresses, engine=engine, alone=alone)
    runtime.in_jobs = in_jobs
    monkeypatch.setattr(table, "runtime_named", lambda _: runtime)
    return locate.locate(HostThatSays(output), Endpoint(PLACE, PORT, on_host=on_host)).target


OWN_NETWORK = Target("172.17.0.5", PORT, network=NETWORK)


@pytest.mark.parametrize(
    ("address", "alone", "expected"),
    [
        (ANYWHERE, True, OWN_NETWORK),
        (ANYWHERE_6, True, OWN_NETWORK),
        (ELSEWHERE, True, OWN_NETWORK),
        (LOOPBACK, True, Target("127.0.0.1", PORT, RELAY)),
        (LOOPBACK_6, True, Target("::1", PORT, RELAY)),
        (ANYWHERE, False, Target("127.0.0.1", PORT, RELAY)),
        (ELSEWHERE, False, Target("172.17.0.5", PORT, RELAY)),
    ],
)
def test_a_containers_own_network_is_reached_from_the_host_and_others_by_a_relay(
    address: str, alone: bool, expected: Target, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Every listener there is the container's, whether its descriptors can be read or not.
    found = target(monkeypatch, probed(row(address), held=None), "172.17.0.5", alone=alone)
    assert found == expected


ON_HOST: dict[str, Any] = {"engine": False, "on_host": True}
NEAR = Target("127.0.0.1", PORT)
MINE_AND_ROOTS = (row(ANYWHERE, inode=77), row(LOOPBACK, user=0, inode=78))


@pytest.mark.parametrize(
    ("output", "how", "expected"),
    [
        (probed(row(LOOPBACK)), {}, NEAR),
        (probed(row(LOOPBACK), held=78), {}, "taken"),
        (probed(row(ANYWHERE_6), held=None), {"engine": False}, NEAR),
        (probed(row(LOOPBACK, user=0)), {"engine": False}, "taken"),
        (probed(row(ANYWHERE, user=1001)), {"engine": False}, "taken"),
        (
            probed(row(LOOPBACK), held=None),
            {"engine": False, "in_jobs": True},
            Target("127.0.0.1", PORT, RELAY, node=True),
        ),
        (probed(row(ANYWHERE, user=0), held=None), ON_HOST, NEAR),
        (probed(row(ANYWHERE, user=999), held=None), ON_HOST, NEAR),
        (probed(row(ANYWHERE, user=1001)), ON_HOST, "taken"),
        (probed(*MINE_AND_ROOTS), {"engine": False}, "taken"),  # the nearer one is met first
    ],
)
def test_on_the_hosts_network_a_socket_must_be_the_containers_the_users_or_the_systems(
    output: str, how: dict[str, Any], expected: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    if expected != "taken":
        assert target(monkeypatch, output, "127.0.0.1", **how) == expected
        return
    with pytest.raises(JlrError, check=lambda error: error.state == expected):
        target(monkeypatch, output, "127.0.0.1", **how)


@pytest.mark.parametrize("output", ["", "user\037root\036", "user\0371\036held\037\036"])
def test_output_that_makes_no_sense_is_reported(output: str) -> None:
    with pytest.raises(JlrError, match="cannot read the list of what listens there"):
        locate.read_listening(output)


def test_a_port_without_a_listener_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(JlrError, match="nothing listens on port 6006 of `cont1`"):
        target(monkeypatch, probed(held=None), "172.17.0.5")


def test_a_loopback_without_a_python_is_told_with_a_remedy(monkeypatch: pytest.MonkeyPatch) -> None:
    output = probed(row(LOOPBACK)).replace("/usr/bin/python3", "")
    with pytest.raises(JlrError, match="no Python is there") as refused:
        target(monkeypatch, output, "172.17.0.5")
    assert "0.0.0.0" in (refused.value.hint or "")


CONTAINER = Container("f00", "cont1", running=True, started_at="t", addresses=("172.17.0.3",))
ALONE = replace(CONTAINER, alone_on={"172.17.0.3": NETWORK})
SERVER = replace(new_server(), python="/usr/bin/python3.11")


def target_of(container: Container, server: Server) -> Target | None:
    return server_endpoint(Containers(DOCKER), container, server).target


def test_a_container_on_the_hosts_network_is_reached_at_the_hosts_loopback() -> None:
    assert target_of(ALONE, SERVER) == Target("172.17.0.3", 8888, network=NETWORK)
    here = replace(CONTAINER, addresses=("127.0.0.1",))
    for near in ("127.0.0.1", "::1"):
        on_loopback = replace(SERVER, loopback_only=True, loopback=near)
        assert target_of(here, on_loopback) == Target(near, 8888)


def test_a_server_that_speaks_tls_is_proved_by_a_relay_also_on_a_network_that_is_reached() -> None:
    secure, on_host = replace(SERVER, secure=True), replace(CONTAINER, addresses=("127.0.0.1",))
    for container in (ALONE, on_host):
        found = target_of(container, secure)
        assert found is not None
        assert found.relay is not None
        assert (found.tls_pid, found.address) == (secure.pid, "127.0.0.1")


def test_a_socket_is_reached_on_the_host_itself_and_never_for_a_container() -> None:
    on_socket = replace(SERVER, port=0, sock="/home/ada/sock")
    here = replace(CONTAINER, addresses=("127.0.0.1",), node="n1")
    found = server_endpoint(Bare(), here, on_socket).target
    assert found == Target("", 0, path="/home/ada/sock")
    assert not found.shared
    in_container = target_of(here, on_socket)
    assert in_container is not None
    assert in_container.path == "" or in_container.relay is not None


def test_a_port_of_a_clusters_node_is_reached_at_the_node_if_it_is_open_there() -> None:
    on_node = replace(CONTAINER, addresses=("127.0.0.1",), node="n1")
    reached = target_of(on_node, SERVER)
    assert reached == Target("n1", 8888, node=True)
    assert reached.shared
    assert target_of(on_node, replace(SERVER, loopback_only=True)) == Target("127.0.0.1", 8888)


@pytest.mark.parametrize(
    ("container", "found"),
    [
        (ALONE, replace(SERVER, loopback_only=True)),
        (CONTAINER, SERVER),
        (replace(CONTAINER, addresses=()), SERVER),
    ],
    ids=["on loopback", "beside others", "without an address"],
)
def test_a_server_that_no_address_leads_to_is_reached_by_a_relay(
    container: Container, found: Server
) -> None:
    relay = ("docker", "exec", "--interactive", "f00", *AS_MAIN_USER, "/usr/bin/python3.11")
    assert target_of(container, found) == Target("127.0.0.1", 8888, relay)
