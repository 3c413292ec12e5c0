"""An endpoint crosses the link's socket and comes out as it went in."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jlremote.jupyter.endpoint import Endpoint, Place, Server, endpoint_from_json
from jlremote.place.host.addresses import Target
from tests.link.fakes import new_endpoint

RELAY = ("podman", "exec", "-i", "c0ffee", "python3")
PLACE = new_endpoint().place
PORTS = st.integers(1, 65535)
TARGETS = st.builds(Target, st.text(), PORTS, st.none() | st.lists(st.text()).map(tuple))
ENDPOINTS = st.builds(
    Endpoint,
    st.builds(Place, st.text(), st.text(), st.text(), st.text()),
    PORTS,
    st.none() | st.builds(Server),
    st.text(),
    st.none() | TARGETS,
)


@given(ENDPOINTS)
def test_an_endpoint_survives_the_socket(endpoint: Endpoint) -> None:
    assert endpoint_from_json(json.loads(json.dumps(endpoint.to_json()))) == endpoint


def test_only_a_port_without_a_server_is_a_further_port() -> None:
    assert new_endpoint().further_port is None
    assert Endpoint(PLACE, 6006).further_port == 6006


@pytest.mark.parametrize(
    ("target", "shared"),
    [
        (Target("172.17.0.5", 6006), False),
        (Target("127.0.0.1", 6006), True),
        (Target("::1", 6006), True),
        (Target("127.0.0.1", 6006, RELAY), False),
        (Target("127.0.0.1", 6006, RELAY, node=True), True),
        (Target("node1", 6006, node=True), True),
    ],
)
def test_a_machines_own_loopback_is_shared_with_its_other_users(
    target: Target, shared: bool
) -> None:
    assert target.shared is shared


@pytest.mark.parametrize(
    ("target", "changeable"),
    [
        (None, False),
        (Target("127.0.0.1", 6006, RELAY), True),
        (Target("127.0.0.1", 6006, RELAY, node=True), False),  # proved after each connection
    ],
)
def test_a_further_port_behind_a_relay_may_change_hands(
    target: Target | None, changeable: bool
) -> None:
    assert Endpoint(PLACE, 6006, target=target).changeable is changeable
    assert not replace(new_endpoint(), target=target).changeable
