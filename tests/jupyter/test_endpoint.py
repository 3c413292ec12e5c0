"""A server's URL and a forward's name lead to this machine only; an endpoint crosses the socket."""

from __future__ import annotations

import json
import re
from dataclasses import asdict, replace
from urllib.parse import parse_qs, unquote, urlsplit

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jlremote.jupyter.discovery import BASE_URL, TOKEN
from jlremote.jupyter.endpoint import Endpoint, Server, endpoint_from_json, hostname
from jlremote.place.host.addresses import Target
from jlremote.place.runtimes.place import Place
from tests.link.fakes import new_endpoint

SERVER = Server(7, "22", 8888, "/cont1/", "a&b=c", False, "", False, "127.0.0.1", True, "python3")
RELAY = ("podman", "exec", "-i", "c0ffee", "python3")
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
NAMES = st.text("aA1-._@é", min_size=1, max_size=100)


def test_notebook_has_other_pages_than_jupyterlab() -> None:
    notebook = replace(SERVER, page="tree")
    assert SERVER.address(8890) == "http://127.0.0.1:8890/cont1/lab?token=a%26b%3Dc"
    assert notebook.address(8890) == "http://127.0.0.1:8890/cont1/tree?token=a%26b%3Dc"
    assert "/cont1/tree/work/a.ipynb?" in notebook.address(8890, "work/a.ipynb")


@pytest.mark.parametrize(
    "path", ["work/a b#1?.ipynb", "/work/ü.ipynb/", "../../etc", "@evil.example"]
)
def test_a_path_stays_below_the_server(path: str) -> None:
    parts = urlsplit(SERVER.address(8890, path))
    assert parts.path.startswith("/cont1/lab/tree/")
    assert (parts.netloc, parts.query) == ("127.0.0.1:8890", "token=a%26b%3Dc")
    assert parts.fragment == ""


@pytest.mark.parametrize(
    "base_url",
    [
        "/\\elsewhere.example/",
        "/@x/",
        "/.x/../..//y/",
        '/"><script>x</script>/',
        "/?a#b/",
        "/é\u202e/",
    ],
)
@pytest.mark.parametrize("token", ["'\"><script>", "a#b", "%0d%0aSet-Cookie:x", "\\"])
def test_a_server_chooses_neither_host_nor_port_nor_markup(base_url: str, token: str) -> None:
    assert BASE_URL.fullmatch(base_url)
    assert TOKEN.fullmatch(token)
    address = replace(SERVER, base_url=base_url, token=token).address(8890, None, "c-d.localhost")
    parts = urlsplit(address)
    assert (parts.scheme, parts.netloc, parts.fragment) == ("http", "c-d.localhost:8890", "")
    assert unquote(parts.path) == f"{base_url}lab"
    assert parse_qs(parts.query) == {"token": [token]}
    # Nothing that ends a word of a shell, an attribute of a page, or a line of a header.
    assert re.fullmatch(r"[\w:/.~%?=+-]+", address, re.ASCII)


@given(ENDPOINTS)
def test_an_endpoint_survives_the_socket(endpoint: Endpoint) -> None:
    assert endpoint_from_json(json.loads(json.dumps(asdict(endpoint)))) == endpoint


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
    assert Endpoint(new_endpoint().place, 6006, target=target).changeable is changeable
    assert not replace(new_endpoint(), target=target).changeable


@pytest.mark.parametrize(
    ("host", "session", "port", "name"),
    [
        ("dgx", "cont1", None, r"cont1-dgx"),
        ("dgx", "torch-train", None, r"torch-train-dgx"),
        ("dgx", "cont1", 6006, r"6006-cont1-dgx"),
        ("me@gpu1.example.org", "cont1", None, r"cont1-me-gpu1-example-org-0[0-9a-f]{12}"),
        ("dgx", "Cont1", None, r"cont1-dgx-0[0-9a-f]{12}"),
        ("gpu-1", "a", None, r"a-gpu-1-0[0-9a-f]{12}"),
    ],
)
def test_usual_names_are_read_at_a_glance_and_others_are_completed_by_a_digest(
    host: str, session: str, port: int | None, name: str
) -> None:
    assert re.fullmatch(rf"{name}\.localhost", hostname(host, session, port))


@given(st.lists(st.tuples(NAMES, NAMES, st.none() | st.just(6006)), unique=True))
def test_no_two_forwards_have_the_same_name_and_each_is_a_label_that_a_browser_takes(
    forwards: list[tuple[str, str, int | None]],
) -> None:
    names = [hostname(*forward) for forward in forwards]
    assert len(set(names)) == len(forwards)
    label = r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?\.localhost"
    assert [name for name in names if not re.fullmatch(label, name)] == []


def test_words_that_meet_in_another_place_make_another_name() -> None:
    assert hostname("c", "a-b") != hostname("b-c", "a")
    assert hostname("c", "6006-a") != hostname("c", "a", 6006)
