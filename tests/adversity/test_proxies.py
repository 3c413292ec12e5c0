"""A proxy in the environment sees nothing of a session: its token would go there in clear."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Iterator
from contextlib import suppress

import pytest

from tests.lab.accounts import Account
from tests.lab.containers import Container, ContainerFactory
from tests.lab.engine import Engine
from tests.lab.laptop import PROGRAMS, Laptop
from tests.lab.remote_host import Keys, new_laptop
from tests.lab.sshd import SSHServer
from tests.sessions.local_lab import local_lab
from tests.sessions.parts import START_SECONDS, Session, started

NAMES = ("http_proxy", "https_proxy", "all_proxy", "ws_proxy", "wss_proxy")
SECONDS = 120


class Proxy:
    """Notes the first bytes of each connection, and closes it."""

    def __init__(self) -> None:
        self._listener = socket.create_server(("", 0))
        self.port = int(self._listener.getsockname()[1])
        self.heard: list[bytes] = []
        threading.Thread(target=self._listen, daemon=True).start()

    def _listen(self) -> None:
        with suppress(OSError):
            while True:
                caller, _ = self._listener.accept()
                with caller:
                    caller.settimeout(5)
                    self.heard.append(caller.recv(4096))

    def variables(self, host: str) -> dict[str, str]:
        """Return an environment that sends everything to it."""
        url = f"http://{host}:{self.port}"
        both = [spelling for name in NAMES for spelling in (name, name.upper())]
        return dict.fromkeys(both, url) | {"no_proxy": "", "NO_PROXY": ""}

    def close(self) -> None:
        self._listener.close()


@pytest.fixture(scope="module")
def proxy() -> Iterator[Proxy]:
    opened = Proxy()
    yield opened
    opened.close()


@pytest.fixture(scope="module")
def behind_it(proxy: Proxy, sshd: SSHServer, account: Account, keys: Keys) -> Iterator[Laptop]:
    with new_laptop(sshd, account, keys) as fresh:
        fresh.environment |= proxy.variables("127.0.0.1")
        yield fresh


@pytest.fixture(scope="module")
def session(proxy: Proxy, behind_it: Laptop, containers: ContainerFactory) -> Session:
    """A session in a container with one, too: docker sets these variables for its users."""
    pairs = [f"{name}={value}" for name, value in proxy.variables("proxy").items()]
    options = [word for pair in pairs for word in ("--env", pair)]
    inside = containers(options=("--add-host", "proxy:host-gateway", *options))
    return started(behind_it, inside)


def heard_a_program_that_heeds_it(proxy: Proxy, where: Container, laptop: Laptop) -> bool:
    """Return whether the proxy is reached from both ends by a program that uses proxies."""
    ask = "import urllib.request as r; r.urlopen('http://jlr.invalid/')"
    laptop.run("/usr/bin/python3", "-c", ask)
    where.engine.try_docker("exec", where.name, "python3", "-c", ask)
    reached = len([asked for asked in proxy.heard if b"jlr.invalid" in asked]) == 2
    proxy.heard.clear()
    return reached


def notebook_here(laptop: Laptop) -> None:
    cell = {"cell_type": "code", "id": "a", "source": "print(6 * 7)", "metadata": {}, "outputs": []}
    document = {"cells": [cell | {"execution_count": None}], "metadata": {}}
    text = json.dumps(document | {"nbformat": 4, "nbformat_minor": 5})
    (laptop.folder / "home/a.ipynb").write_text(text, "utf-8")


def test_no_command_tells_a_proxy_of_the_environment(
    proxy: Proxy, session: Session, engine: Engine
) -> None:
    laptop, name, job = session.laptop, session.name, f"{session.name}-job"
    session.write_notebook("there.ipynb", "6 * 7")
    assert proxy.heard == []
    assert heard_a_program_that_heeds_it(proxy, Container(engine, name), laptop)
    with session.notebook("kept.ipynb") as kernel:
        assert kernel.run("print(6 * 7)").strip() == "42"
        for words in (
            ("start", "lab", name, "--no-browser"),
            ("open", name, "--no-browser"),
            ("url", name),
            ("list",),
            ("list", name),
            ("logs", name),
            ("output", name),
            ("run", "lab", "--in", name, "--name", job, "there.ipynb"),
            ("job", "list"),
            ("job", "attach", job),
            ("local", "kernels", "install", name, "--json"),
            ("forward", name, "9999"),
        ):
            laptop.jlr(*words, timeout=SECONDS).checked()
            assert proxy.heard == [], words
    found = json.loads(laptop.jlr("doctor", "lab", "--json", timeout=SECONDS).stdout)["checks"]
    marks = {one["check"]: one["mark"] for one in found}
    assert (marks["websocket"], marks["kernel"]) == ("ok", "ok"), found
    assert proxy.heard == []
    [spec] = json.loads(laptop.jlr("local", "kernels", "list", "--json").stdout)
    notebook_here(laptop)
    executed = laptop.run(
        *(str(PROGRAMS / "jupyter-nbconvert"), "--to", "notebook", "--execute", "a.ipynb"),
        *(f"--ExecutePreprocessor.kernel_name={spec['name']}", "--output", "b"),
        timeout=SECONDS,
    )
    executed.checked()
    with local_lab(session) as lab, lab.server.notebook("here.ipynb") as kernel:
        assert kernel.run("6 * 7") == "42"
    for words in (("restart", name), ("stop", name)):
        laptop.jlr(*words, timeout=START_SECONDS).checked()
    assert proxy.heard == []
