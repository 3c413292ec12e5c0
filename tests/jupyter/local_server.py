"""JupyterLab on this machine, of any version, with the configuration of one that jlr launches."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.request import Request, urlopen

from jlremote.jupyter import configuration
from tests.lab.place import exclusive, root
from tests.lab.ports import free_port, listens
from tests.lab.programs import run, wait_until

PROGRAMS = Path(sys.executable).parent


def programs(notebook: str) -> Path:
    """Return the folder with the programs of a version of Notebook, kept below the lab's.

    Each brings its version of JupyterLab along: Notebook 7.0 that of JupyterLab 4.0.
    """
    folder = root() / "jupyter" / notebook
    with exclusive(root() / "jupyter.lock", print, "another run that installs Jupyter"):
        if not (folder / "whole").exists():
            run(sys.executable, "-m", "venv", "--clear", str(folder))
            packages = (f"notebook=={notebook}.*", "ipywidgets", "tqdm")
            run(str(folder / "bin/pip"), "install", "--quiet", *packages, timeout=900)
            (folder / "whole").touch()
    return folder / "bin"


@dataclass(frozen=True)
class LocalServer:
    """A server that answers; `base` is its host and port with its `base_url`."""

    base: str
    token: str
    folder: Path

    @property
    def url(self) -> str:
        """What a browser is given."""
        return f"http://{self.base}lab?token={self.token}"

    def ask(self, path: str, body: Any = None) -> Any:
        """Return the JSON that it answers to `api/…`, a POST if there is a body."""
        headers = {"Authorization": f"token {self.token}"}
        data = None if body is None else json.dumps(body).encode()
        with urlopen(Request(f"http://{self.base}{path}", data, headers), timeout=30) as answer:
            return json.loads(answer.read() or b"null")

    def log(self) -> str:
        return (self.folder / "log").read_text("utf-8", "replace")


@contextmanager
def local_server(
    folder: Path, faster: int = 1, *, record: bool = False, programs: Path = PROGRAMS
) -> Iterator[LocalServer]:
    """Start one, whose pings and their limit are as much faster; it may have a recorder."""
    config, runtime, root = (folder / name for name in ("config", "runtime", "root"))
    for each in (config, runtime, root):
        each.mkdir(parents=True)
    for name, text in configuration.files("here", "here.localhost", record=record).items():
        for number in (configuration.PING_INTERVAL, configuration.PING_LIMIT):
            text = text.replace(f"={number}", f"={number // faster}")
        (config / name).write_text(text)
    here = {"JUPYTER_CONFIG_PATH": config, "JUPYTER_RUNTIME_DIR": runtime}
    here |= {"JUPYTER_CONFIG_DIR": folder / "own", "HOME": folder, "IPYTHONDIR": folder / "ipython"}
    port = free_port()
    options = ("--no-browser", "--allow-root", "--ip=127.0.0.1", f"--port={port}")
    with (folder / "log").open("w") as log:
        argv = (programs / "jupyter-lab", *options)
        environment = {**os.environ, **{name: str(path) for name, path in here.items()}}
        with subprocess.Popen(argv, cwd=root, env=environment, stdout=log, stderr=log) as process:
            try:
                # It writes its file a moment before it listens.
                wait_until(lambda: listens(port), "the server", timeout=90)
                (file,) = runtime.glob("jpserver-*.json")
                told = json.loads(file.read_text())
                yield LocalServer(f"127.0.0.1:{port}{told['base_url']}", told["token"], folder)
            finally:
                process.terminate()
