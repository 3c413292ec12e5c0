"""What the JupyterLab of `jlr local lab` answers, and where its client of the session connects."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import threading
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest

from jlremote.kernels import lab_config
from tests.lab.laptop import PROGRAMS
from tests.lab.ports import free_port
from tests.lab.programs import wait_until


@pytest.mark.parametrize(
    "path",
    [
        *("", "lab", "lab/", "lab/tree/a.ipynb", "lab/extensions/x/static/a.js", "static/lab/a.js"),
        *("api", "api/contents/a.ipynb", "api/kernels/1/channels", "api/sessions", "files/a.png"),
        *("lab/api/settings/@jupyterlab/x:plugin", "lab/api/workspaces/default", "login"),
    ],
)
@pytest.mark.parametrize("base", ["/", "/me/"])
def test_what_the_page_needs_is_answered(base: str, path: str) -> None:
    assert lab_config.is_answered(base + path, base)


@pytest.mark.parametrize(
    "path",
    [
        *("api/terminals", "api/terminals/1", "terminals/websocket/1", "terminals/1", "lsp/status"),
        *("api/kernels2", "api/config/x", "api/nbconvert", "nbconvert/pdf/a.ipynb", "git/clone"),
        *("lab/api/build", "lab//api/build", "lab/api//build", "lab/api/extensions", "metrics"),
        *("lab/api/plugins", "/api/terminals", "view/a.html", "api\n/terminals"),
    ],
)
@pytest.mark.parametrize("base", ["/", "/me/"])
def test_no_other_path_is_answered(base: str, path: str) -> None:
    assert not lab_config.is_answered(base + path, base)


class Recording(BaseHTTPRequestHandler):
    """Notes each request, and redirects where it is told to."""

    def do_GET(self) -> None:
        """Answer with a redirect, or an empty document."""
        server = self.server
        assert isinstance(server, Recorder)
        server.asked.append(self.path)
        self.send_response(302 if server.other else 200)
        if server.other:
            self.send_header("Location", server.other)
        self.send_header("Content-Length", "2")
        self.end_headers()
        self.wfile.write(b"{}")

    def log_message(self, *_: object) -> None:
        """Say nothing."""


class Recorder(HTTPServer):
    """A server at the address of the session, or at another one of this machine's network."""

    def __init__(self, other: str = "") -> None:
        super().__init__(("127.0.0.1", 0), Recording)
        self.other = other
        self.asked: list[str] = []
        self.url = f"http://127.0.0.1:{self.server_port}/"


@contextmanager
def serving(server: Recorder) -> Iterator[Recorder]:
    threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
    yield server
    server.shutdown()
    server.server_close()


@contextmanager
def jupyterlab(folder: Path, gateway: str, **variables: str) -> Iterator[subprocess.Popen[str]]:
    shutil.copy(lab_config.__file__, folder / "jupyter_config.py")
    folders = dict.fromkeys(("JUPYTER_CONFIG_DIR", "JUPYTER_DATA_DIR", "HOME"), str(folder))
    process = subprocess.Popen(
        (PROGRAMS / "jupyter-lab", "--no-browser", "--allow-root", "--ServerApp.ip=127.0.0.1"),
        env={**os.environ, **folders, "JUPYTER_GATEWAY_URL": gateway, **variables},
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    try:
        yield process
    finally:
        process.terminate()
        process.communicate(timeout=60)


def refuses(request: urllib.request.Request) -> bool:
    """Return whether it answers with an error; it says that it listens a moment before."""
    try:
        urllib.request.urlopen(request, timeout=60)
    except urllib.error.URLError as error:
        return isinstance(error, urllib.error.HTTPError)
    raise AssertionError("it has followed the session")


@pytest.mark.lab
def test_a_session_does_not_lead_it_to_other_addresses(tmp_path: Path) -> None:
    with serving(Recorder()) as inside, serving(Recorder(inside.url)) as session:
        with jupyterlab(tmp_path, session.url, JUPYTER_PORT=str(free_port())) as process:
            assert process.stdout is not None
            found = next(
                found
                for line in process.stdout
                if (found := re.search(r"(http://127\.0\.0\.1:\d+/)lab\?token=(\w+)", line))
            )
            threading.Thread(target=process.stdout.read, daemon=True).start()
            request = urllib.request.Request(f"{found[1]}api/kernelspecs")
            request.add_header("Authorization", f"token {found[2]}")
            wait_until(lambda: refuses(request), "its answer", timeout=60)
        assert "/api/kernelspecs" in session.asked
        assert inside.asked == []


@pytest.mark.lab
def test_without_its_configuration_it_does_not_run(tmp_path: Path) -> None:
    with jupyterlab(tmp_path, "http://127.0.0.1:9/", JLR_LAB_PIPE="no number") as process:
        said = process.communicate(timeout=60)[0]
    assert process.returncode == 1
    assert "`jlr local lab` cannot configure JupyterLab" in said
    assert "Traceback" not in said


def test_an_older_one_does_not_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lab_config, "__version__", "3.6.8")
    with pytest.raises(SystemExit, match=r"needs JupyterLab 4, and this is 3\.6\.8"):
        lab_config.main(None)
