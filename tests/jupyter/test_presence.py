"""Servers in containers are recognized from outside, by their processes' arguments."""

from __future__ import annotations

from dataclasses import replace

import pytest

from jlremote.jupyter import scripts
from jlremote.jupyter.launch import Launch
from jlremote.jupyter.presence import is_session, owner, runs_jupyter
from jlremote.place.host.contract import USER_LABEL
from jlremote.place.runtimes.container_list import ContainerProcess, ListedContainer
from jlremote.place.runtimes.engine.kinds import DOCKER
from jlremote.place.runtimes.engine_containers import Containers
from jlremote.place.runtimes.runtime import SESSION_LABEL, Container, Volume

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
