"""What runs in containers is told from outside, by the arguments of their processes."""

from __future__ import annotations

import pytest

from jlremote.jupyter import scripts
from jlremote.jupyter.presence import is_session, runs_jupyter
from jlremote.runtimes.contract import SESSION_LABEL, Container, Volume
from jlremote.runtimes.overview import Glimpse, Process

CONTAINER = Container("f00", "cont1", running=True, started_at="t")
LAUNCHED = scripts.launch("cont1", "1", engine=True, bind_address="0.0.0.0")


def glimpse(*commands: str, user: str = "root", container: Container = CONTAINER) -> Glimpse:
    return Glimpse(container, "running", tuple(Process(user, command) for command in commands))


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
        ("sh -c " + scripts.probe("cont1", engine=True).replace("\n", " "), False),
    ],
)
def test_a_jupyter_server_is_told_from_what_only_speaks_of_one(command: str, runs: bool) -> None:
    assert runs_jupyter(glimpse("sleep infinity", command)) is runs


def test_a_session_is_what_jlr_has_made_or_launched() -> None:
    labelled = Container("f00", "c", running=False, started_at="t", labels={SESSION_LABEL: "c"})
    assert is_session(glimpse(container=labelled))
    assert is_session(glimpse("sleep infinity", "sh -c " + LAUNCHED.replace("\n", " ")))
    assert not is_session(glimpse("sh -c " + scripts.probe("cont1", engine=True)))
    assert not runs_jupyter(glimpse("sh -c " + LAUNCHED.replace("\n", " ")))


def test_an_owner_is_the_user_of_the_processes_or_of_the_home_folder_that_is_seen() -> None:
    at_home = Container("f", "c", True, "t", volumes=(Volume("/home/ada/work", "/work"),))
    assert glimpse("sh", user="grace", container=at_home).owner == "grace"
    assert glimpse("sh", container=at_home).owner == "ada"
    assert glimpse("sh").owner is None
