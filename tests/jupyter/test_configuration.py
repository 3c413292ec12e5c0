"""The configuration of a server that jlr launches."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from types import SimpleNamespace

import pytest
from jupyter_core.application import JupyterApp

from jlremote.jupyter.configuration import HOST_PORT, files


@pytest.fixture
def short() -> Iterator[Path]:
    """Return a folder whose path leaves room for a socket's name."""
    with TemporaryDirectory(dir="/tmp") as folder:
        yield Path(folder)


def applied(name: str, hostname: str, *, socket: str | None = None) -> SimpleNamespace:
    """Return what a server gets from the configuration, which runs in this process."""
    server = SimpleNamespace(tornado_settings={})
    settings = SimpleNamespace(ServerApp=server, IdentityProvider=SimpleNamespace())
    made = files(name, hostname, socket=socket, record=False)
    made["jlr_resumption.py"] = "resume = str"  # these change Jupyter's classes
    made["jlr_pages.py"] = "limit_pages = ask_again = say_nothing_outside = str"
    with TemporaryDirectory() as folder:
        file = Path(folder, "jupyter_server_config.py")
        for each, text in made.items():
            file.with_name(each).write_text(text, "utf-8")
        exec(made[file.name], {"get_config": lambda: settings, "__file__": str(file)})
    return settings


def listening(runtime: Path, application: type, monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    """Return what a server gets that is to listen on a socket in its runtime folder."""
    monkeypatch.setenv("JUPYTER_RUNTIME_DIR", str(runtime))
    monkeypatch.setattr(JupyterApp, "instance", application)
    settings = applied("cont1", "cont1-dgx.localhost", socket="sock")
    made: SimpleNamespace = settings.ServerApp
    return made


class OldServer:
    pass


class Server:
    sock = ""


def test_a_server_listens_on_a_socket_and_an_old_one_on_a_port(
    short: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    new = listening(short, Server, monkeypatch)
    assert (new.sock, new.port) == (f"{short}/sock", 8888)
    assert not (short / "sock").exists()
    old = (short, OldServer), (short / ("x" * 108), Server), (short / "missing", Server)
    for runtime, kind in old:  # or one whose path takes no socket
        made = listening(runtime, kind, monkeypatch)
        assert (made.sock, made.port) == ("", HOST_PORT)


def test_a_server_has_a_name_a_path_and_a_token_of_its_own() -> None:
    settings = applied("cont1", "cont1-dgx.localhost")
    assert re.fullmatch("/cont1-[0-9a-f]{16}/", settings.ServerApp.base_url)
    assert settings.ServerApp.local_hostnames == ["localhost", "cont1-dgx.localhost"]
    assert len(settings.IdentityProvider.token) == 48
