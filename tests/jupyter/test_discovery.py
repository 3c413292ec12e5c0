"""Servers are recognized with care: any program may have written what the host prints."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from jlremote.jupyter import scripts
from jlremote.jupyter.discovery import read_probe
from jlremote.jupyter.endpoint import Server
from jlremote.jupyter.launch import Launch
from jlremote.jupyter.presence import is_session, owner, runs_jupyter
from jlremote.place.host.contract import USER_LABEL
from jlremote.place.runtimes.engine.kinds import DOCKER
from jlremote.place.runtimes.engine_containers import ContainerProcess, Containers, ListedContainer
from jlremote.place.runtimes.runtime import SESSION_LABEL, Container, Volume
from tests.jupyter.parts import DIRECTORY, FACTS, listening, probed, server


def test_a_server_is_read_with_all_that_identifies_it() -> None:
    findings = read_probe(probed(server()))
    assert findings.jupyter == "/opt/bin/jupyter-lab"
    assert findings.exit_status is None
    [found] = findings.servers
    assert found == Server(
        pid=7,
        process_start="22",
        port=8888,
        base_url="/cont1/",
        token="5ec2e7",
        password=False,
        root_directory="/work",
        loopback_only=False,
        loopback="127.0.0.1",
        ours=True,
        python="/usr/bin/python3.11",
        page="lab",
        called="python",
    )
    assert "5ec2e7" not in repr(found)


def test_the_server_that_jlr_launched_comes_first() -> None:
    theirs = server(path="/root/.local/share/jupyter/runtime/jpserver-8.json", pid="8")
    assert [found.ours for found in read_probe(probed(theirs, server())).servers] == [True, False]


@pytest.mark.parametrize(
    ("table", "loopback_only", "near"),
    [
        (listening("0100007F"), True, "127.0.0.1"),
        (listening("0200007F"), True, "127.0.0.2"),
        (listening("020011AC"), False, "172.17.0.2"),
        (listening("00000000000000000000000001000000"), True, "::1"),
        (listening("0" * 32), True, "::1"),
        (listening("0100007F") + "\n" + listening("020011AC"), False, "127.0.0.1"),
        (listening() + "\n" + listening("0" * 32), False, "127.0.0.1"),
        (listening(), False, "127.0.0.1"),
    ],
)
def test_a_server_on_loopback_is_known_as_such(table: str, loopback_only: bool, near: str) -> None:
    [found] = read_probe(probed(server(), table=table)).servers
    assert (found.loopback_only, found.loopback) == (loopback_only, near)


OWN_SOCKET = f"{DIRECTORY}/runtime/sock-l1"
ROW = f"00000000ebe3b842: 00000002 00000000 00010000 0001 01    99 {OWN_SOCKET}"


def on_socket(sock: object, **how: str) -> tuple[Server, ...]:
    """Return the servers that are found where one claims to listen on a unix socket."""
    text = probed(server(FACTS | {"port": 0, "sock": sock}, **how), table="")
    return read_probe(f"{text}sockets\037{ROW}\036").servers


def test_a_server_on_the_socket_of_its_session_is_found_without_a_port() -> None:
    [found] = on_socket(OWN_SOCKET)
    assert (found.sock, found.port, found.ours) == (OWN_SOCKET, 0, True)
    assert (found.loopback_only, found.loopback) == (True, "127.0.0.1")


def test_another_socket_or_another_process_with_the_pid_is_no_server() -> None:
    assert on_socket("/run/docker.sock") == ()
    assert on_socket(f"{DIRECTORY}/runtime/sock-l1/../../../sock-l1") == ()
    assert on_socket(1) == ()
    assert on_socket(OWN_SOCKET, descriptors="lr-x 3 -> socket:[98]") == ()
    assert on_socket(OWN_SOCKET, descriptors="") == ()


@pytest.mark.parametrize(
    ("words", "kind", "page"),
    [
        ("python\0/opt/bin/jupyter-lab\0/data/notebook\0", "jpserver", "lab"),
        ("python\0-m\0jupyterlab\0--allow-root\0", "nbserver", "lab"),
        ("python\0-Es\0/usr/bin/jupyter-notebook\0/data/jupyterlab\0", "jpserver", "tree"),
        ("python\0-m\0notebook\0", "nbserver", "tree"),
        ("python\0/usr/bin/jupyterhub-singleuser\0", "jpserver", "lab"),
        ("python\0/srv/own.py\0", "nbserver", "tree"),
        ("", "jpserver", "lab"),
    ],
)
def test_the_page_is_that_of_the_program_that_was_started(words: str, kind: str, page: str) -> None:
    record = server(path=f"{DIRECTORY}/runtime/{kind}-7.json", words=words)
    [found] = read_probe(probed(record)).servers
    assert found.page == page


@pytest.mark.parametrize(
    "record",
    [
        server(descriptors="lr-x 3 -> socket:[100]"),
        server("{"),
        server("[" * 100_000),
        server(FACTS | {"port": "8888"}),
        server(FACTS | {"port": 8889}),
        server({key: value for key, value in FACTS.items() if key != "token"}),
        server(FACTS | {"token": "two\nlines"}),
        server(FACTS | {"base_url": "//elsewhere.example/"}),
        server(FACTS | {"base_url": "@elsewhere.example/"}),
        server(FACTS | {"base_url": "/a\x1b/"}),
        server(json.dumps(FACTS) + "\037more"),
        server(pid="self"),
        server(stat=""),
        "server\037",
        "server",
    ],
    ids=lambda record: record[-60:],
)
def test_a_file_without_its_running_server_is_ignored(record: str) -> None:
    other = server(path="/home/u/.local/share/jupyter/runtime/jpserver-9.json", pid="9")
    assert [found.pid for found in read_probe(probed(record, other)).servers] == [9]


def test_the_exit_status_of_the_last_launch_is_read() -> None:
    assert read_probe(probed(status="1\n")).exit_status == 1
    assert read_probe(probed(status="garbage")).exit_status is None


CONTAINER = Container("f00", "cont1", running=True, started_at="t")
LAUNCHED = Launch(Containers(DOCKER), "cont1", "1", "cont1-dgx.localhost").script()


def glimpse(
    *commands: str, user: str = "root", container: Container = CONTAINER
) -> ListedContainer:
    return ListedContainer(
        container, "running", tuple(ContainerProcess(user, command) for command in commands)
    )


@pytest.mark.parametrize(
    ("command", "runs"),
    [
        ("/opt/bin/python3 /opt/bin/jupyter-lab --no-browser", True),
        ("python -m jupyterlab", True),
        ("python3 -Es /usr/bin/jupyter-notebook /data", True),
        ("/sbin/docker-init -- jupyter-lab --ip=0.0.0.0", True),
        ("python3 /usr/bin/jupyterhub-singleuser", True),
        ("python train.py --config conf/base.yml --log /jupyter-lab", False),
        ("python3 -m ipykernel_launcher -f /root/.local/share/jupyter/runtime/k.json", False),
        ("vim my-notebook", False),
        ("sh -c " + scripts.probe(Containers(DOCKER), "cont1").replace("\n", " "), False),
    ],
)
def test_a_jupyter_server_is_told_from_a_program_that_names_it(command: str, runs: bool) -> None:
    assert runs_jupyter(glimpse("sleep infinity", command)) is runs


def test_a_session_is_a_container_that_jlr_made_or_launched_jupyter_in() -> None:
    labelled = Container("f00", "c", running=False, started_at="t", labels={SESSION_LABEL: "c"})
    assert is_session(glimpse(container=labelled))
    assert is_session(glimpse("sleep infinity", "sh -c " + LAUNCHED.replace("\n", " ")))
    assert not is_session(glimpse("sh -c " + scripts.probe(Containers(DOCKER), "cont1")))
    assert not runs_jupyter(glimpse("sh -c " + LAUNCHED.replace("\n", " ")))


def test_the_owner_is_the_user_of_the_processes_or_of_a_mounted_home_folder() -> None:
    at_home = Container("f", "c", True, "t", volumes=(Volume("/home/ada/work", "/work"),))
    labelled = replace(at_home, labels={USER_LABEL: "joan"})
    assert owner(glimpse("sh", user="grace", container=labelled)) == "joan"
    assert owner(glimpse("sh", user="grace", container=at_home)) == "grace"
    assert owner(glimpse("sh", container=at_home)) == "ada"
    assert owner(glimpse("sh")) is None
