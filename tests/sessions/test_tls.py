"""A Jupyter with a certificate: off where jlr launches it."""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping

import pytest

from tests.lab.certificates import Certificate, certificate
from tests.lab.containers import ContainerFactory
from tests.lab.laptop import Laptop
from tests.sessions.parts import started

FILE = "/srv/own/both.pem"
BOTH = {"certfile": FILE, "keyfile": FILE}
USERS = "/root/.jupyter/jupyter_server_config"


@pytest.fixture
def laptop(clean_laptop: Laptop) -> Laptop:
    return clean_laptop


def both(made: Certificate) -> str:
    return made.text + made.key


def files(texts: Mapping[str, str]) -> str:
    """Return shell text that writes files, which only their owner can read."""
    lines = ("umask 077; mkdir -p /srv/own /root/.jupyter /etc/jupyter; cd /srv/own",)
    writes = (f"printf %s {shlex.quote(text)} >{path}" for path, text in texts.items())
    return "\n".join((*lines, *writes))


def test_certificates_of_all_configurations_are_off_where_jlr_launches(
    laptop: Laptop, container: ContainerFactory
) -> None:
    here = container()
    lines = "\n".join(f"get_config().APP.{name} = '{FILE}'" for name in BOTH)
    texts = {
        FILE: both(certificate()),
        "/etc/jupyter/jupyter_server_config.json": json.dumps({"ServerApp": BOTH}),
        "/root/.jupyter/jupyter_lab_config.py": lines.replace("APP", "ServerApp"),
        "/root/.jupyter/jupyter_notebook_config.py": lines.replace("APP", "NotebookApp"),
        f"{USERS}.py": f"get_config().ServerApp.ssl_options = {BOTH}",
    }
    here.execute("sh", "-c", files(texts))
    assert started(laptop, here).born()
