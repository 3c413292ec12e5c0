"""A session as a person has it: what `jlr start --json` said, and Jupyter's own API behind it."""

from __future__ import annotations

import json
import re
import socket
import threading
from collections.abc import Collection, Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit
from urllib.request import Request, urlopen
from uuid import uuid4

from websocket import WebSocket, WebSocketTimeoutException, create_connection

from tests.lab.containers import Container, ContainerFactory
from tests.lab.laptop import Laptop
from tests.lab.ports import free_port
from tests.lab.programs import SYSTEM_PATH, Result, wait_until

# Other work runs on the two cores that a boot of JupyterLab wants for itself.
START_SECONDS = 150
SERVER = ("jupyter", "lab", "--allow-root", "--no-browser", "--ServerApp.base_url=/theirs/")


def start(laptop: Laptop, host: str, *words: str) -> Result:
    """Run `jlr start HOST …` without a browser."""
    return laptop.jlr("start", host, *words, "--no-browser", timeout=START_SECONDS)


def started(laptop: Laptop, container: Container | str, *words: str, host: str = "lab") -> Session:
    """Return the session that `jlr start` makes of a container; it must succeed.

    A new session gets a port that no other test takes while it is released: they all begin at 8888.
    """
    name = container if isinstance(container, str) else container.name
    record = Path(laptop.environment["XDG_STATE_HOME"], "jlr", "sessions", f"{host}+{name}.json")
    if "--port" not in words and not record.exists():
        words = (*words, "--port", str(free_port()))
    result = start(laptop, host, name, *words, "--json")
    assert result.status == 0, result
    return Session(laptop, json.loads(result.stdout))


def failed(result: Result, status: int, *words: str) -> str:
    """Check that a command failed as a person can read it, and return its message and hint."""
    assert result.status == status, result
    assert result.stdout == "", result
    assert "/jlremote/" not in result.stderr, f"a traceback of ours: {result}"
    lines = result.stderr.splitlines()
    errors = [number for number, line in enumerate(lines) if line.startswith("error: ")]
    assert len(errors) == 1, result
    message = "\n".join(lines[errors[0] :])
    for word in words:
        assert word in message, result
    return message


def with_a_server(container: ContainerFactory, *options: str) -> Container:
    """Return a container whose own process is a Jupyter server that answers."""
    here = container("lab/jupyter", *SERVER, *options)
    here.await_output("is running at")
    return here


@dataclass(frozen=True)
class Session:
    """A session that runs.

    Attributes:
        laptop: who started it.
        report: the object that `jlr start --json` printed.
    """

    laptop: Laptop
    report: dict[str, Any]

    @property
    def name(self) -> str:
        """The session's name."""
        return str(self.report["name"])

    @property
    def url(self) -> str:
        """What a browser is given."""
        return str(self.report["url"])

    @property
    def port(self) -> int:
        """The local port."""
        return int(self.report["local_port"])

    @property
    def base(self) -> str:
        """`127.0.0.1:PORT` and the server's `base_url`."""
        parts = urlsplit(self.url)
        return parts.netloc + re.split(r"(?<=/)(?:lab|tree)(?=/|$)", parts.path)[0]

    @property
    def token(self) -> str:
        """Jupyter's token."""
        return parse_qs(urlsplit(self.url).query)["token"][0]

    def ask(self, path: str, body: Any = None, method: str | None = None) -> Any:
        """Return the JSON that Jupyter answers to `api/…`, a POST if there is a body."""
        headers = {"Authorization": f"token {self.token}"}
        data = None if body is None else json.dumps(body).encode()
        request = Request(f"http://{self.base}{path}", data, headers, method=method)
        with urlopen(request, timeout=30) as answer:
            return json.loads(answer.read() or b"null")

    def born(self) -> str:
        """Return when the server that answers was started: another time is another server."""
        return str(self.ask("api/status")["started"])

    def write_notebook(self, path: str, *code: str) -> None:
        """Put a notebook there with a cell for each code; their ids are `c0` and so on."""
        facts: dict[str, Any] = {"execution_count": None, "metadata": {}, "outputs": []}
        cells = [
            {"cell_type": "code", "id": f"c{number}", "source": source} | facts
            for number, source in enumerate(code)
        ]
        kernel = {"name": "python3", "display_name": "Python 3", "language": "python"}
        document = {"cells": cells, "nbformat": 4, "nbformat_minor": 5}
        content = document | {"metadata": {"kernelspec": kernel}}
        self.ask(f"api/contents/{path}", {"type": "notebook", "content": content}, "PUT")

    def output_with(self, words: str) -> str:
        """Return what `jlr output` shows, once it has these words."""
        place = f"{self.report['host']}/{self.name}"
        shown: list[str] = []

        def complete() -> bool:
            shown[:] = [self.laptop.jlr("output", place).stdout]
            return words in shown[0]

        wait_until(complete, f"`{words}` in the recorded output", timeout=60)
        return shown[0]

    def run_in_terminal(self, line: str) -> None:
        """Open a terminal, as JupyterLab does, and type a line there."""
        name = self.ask("api/terminals", {})["name"]
        header = [f"Authorization: token {self.token}"]
        address = f"ws://{self.base}terminals/websocket/{name}"
        socket = create_connection(address, header=header, timeout=60)
        socket.send(json.dumps(["stdin", f"{line}\r"]))
        socket.close()

    def channels(self, kernel: str, *, from_page: bool = True) -> WebSocket:
        """Open a websocket to a kernel, as a page does, or as another program."""
        header = [f"Authorization: token {self.token}"]
        address = f"ws://{self.base}api/kernels/{kernel}/channels"
        return create_connection(address, header=header, timeout=60, suppress_origin=not from_page)

    @contextmanager
    def notebook(self, path: str) -> Iterator[Kernel]:
        """Give a kernel for a notebook of that path, as JupyterLab starts it; end it afterwards."""
        asked = {"path": path, "name": path, "type": "notebook", "kernel": {"name": "python3"}}
        opened = self.ask("api/sessions", asked)
        kernel = str(opened["kernel"]["id"])
        socket = self.channels(kernel)
        try:
            yield Kernel(self, kernel, socket)
        finally:
            socket.close()
            with suppress(OSError):  # the test may have stopped the server
                self.ask(f"api/sessions/{opened['id']}", method="DELETE")


@dataclass(frozen=True)
class Kernel:
    """A kernel and a websocket to it."""

    session: Session
    id: str
    socket: WebSocket

    @contextmanager
    def reached_anew(self, *, from_page: bool = True) -> Iterator[Kernel]:
        """Give it with a new websocket to it."""
        with closing(self.session.channels(self.id, from_page=from_page)) as socket:
            yield replace(self, socket=socket)

    def send(self, code: str, cell: str | None = None) -> str:
        """Have code run, as JupyterLab's cell, without waiting, and return the request's id."""
        content = {"code": code, "silent": False, "store_history": True, "allow_stdin": False}
        return self._request("execute_request", content, {} if cell is None else {"cellId": cell})

    def _request(
        self,
        kind: str,
        content: dict[str, Any],
        metadata: dict[str, Any] | None = None,
        channel: str = "shell",
    ) -> str:
        header = {"msg_id": uuid4().hex, "msg_type": kind, "version": "5.3"}
        message = {"header": header, "parent_header": {}, "content": content}
        message["metadata"] = metadata or {}
        self.socket.send(json.dumps(message | {"channel": channel}))
        return header["msg_id"]

    def await_start(self) -> None:
        """Wait for its first answer; old servers lose what they are asked before."""
        self._await_answer("kernel_info_reply")

    def _await_answer(self, sign: str, channel: str = "shell") -> None:
        """Ask each second until such a message, or one that tells this state, answers."""
        asked = set[str]()

        def answers() -> bool:
            asked.add(self._request("kernel_info_request", {}, channel=channel))
            self.socket.settimeout(1)
            try:
                while True:
                    message = json.loads(self.socket.recv())
                    told = (message["msg_type"], message["content"].get("execution_state"))
                    if sign in told and message["parent_header"].get("msg_id") in asked:
                        return True
            except WebSocketTimeoutException:
                return False
            finally:
                self.socket.settimeout(60)

        wait_until(answers, f"the kernel's answer `{sign}`", timeout=60)

    def run(self, code: str) -> str:
        """Return what code evaluates to, or prints."""
        request, output = self.send(code), ""
        while True:
            message = json.loads(self.socket.recv())
            content = message["content"]
            if message["parent_header"].get("msg_id") != request:
                continue
            if message["msg_type"] == "execute_result":
                output += content["data"]["text/plain"]
            elif message["msg_type"] == "stream":
                output += content["text"]
            elif message["msg_type"] == "error":
                output += f"{content['ename']}: {content['evalue']}"
            elif content.get("execution_state") == "idle":
                return output

    def keep_busy(self) -> None:
        """Have it run for longer than any test, and wait until the server knows.

        Jupyter may have closed the first websocket, whose pings only `run` answers. For a new one
        the server asks the kernel on the channels `shell` and `control`. The latter has a thread of
        its own: with its `idle` behind the cell's `busy`, the server takes the kernel for idle.
        """
        with self.reached_anew() as kernel:
            kernel._await_answer("idle", "control")
            kernel.send("import time; time.sleep(3600)")
            wait_until(lambda: self.state() == "busy", "the kernel's being busy", timeout=60)

    def interrupt(self) -> None:
        """Stop what runs in it."""
        self.session.ask(f"api/kernels/{self.id}/interrupt", {})

    def state(self) -> str:
        """Return the server's word for what the kernel does."""
        return str(self.session.ask(f"api/kernels/{self.id}")["execution_state"])


DOCKER = ("--runtime", "docker")  # else podman takes its place


def without(folder: Path, *missing: str) -> Path:
    """Return a folder with every program of the machine but some, which all may read."""
    link_all_but(missing, folder)
    for parent in (folder, *folder.parents):
        if parent.owner() == "root" and parent != Path("/tmp") and parent != Path("/"):
            parent.chmod(0o755)
    return folder


def link_all_but(missing: Collection[str], folder: Path) -> None:
    """Fill a folder with every program of the machine but some."""
    for path in SYSTEM_PATH.split(":"):
        for program in Path(path).glob("*"):
            link = folder / program.name
            if program.name not in missing and not link.is_symlink():
                link.symlink_to(program)


@contextmanager
def answering(words: bytes) -> Iterator[int]:
    """Listen on a port of 127.0.0.1, greet whoever comes and hang up; without words stay silent."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        callers: list[socket.socket] = []

        def greet() -> None:
            while True:
                try:
                    caller, _ = listener.accept()
                except OSError:
                    return
                callers.append(caller)
                caller.sendall(words)
                if words:
                    caller.shutdown(socket.SHUT_WR)

        greeter = threading.Thread(target=greet, daemon=True)
        greeter.start()
        yield listener.getsockname()[1]
        listener.shutdown(socket.SHUT_RDWR)
        greeter.join()
        for caller in callers:
            caller.close()


def add(laptop: Laptop, alias: str, port: int, *lines: str) -> None:
    """Make a port known as a host, with further lines of its block."""
    block = (f"Host {alias}", "HostName 127.0.0.1", f"Port {port}", *lines)
    with laptop.ssh_config.open("a") as config:
        config.write("\n    ".join(block) + "\n")


def nothing_is_left(laptop: Laptop) -> None:
    """Check that there is no session, no bug report, no process and no socket."""
    wait_until(lambda: laptop.processes() == [], "the end of the link")
    assert json.loads(laptop.jlr("list", "--json").stdout) == []
    assert not list((laptop.folder / "state" / "jlr" / "sessions").iterdir())
    assert not list((laptop.folder / "state" / "jlr" / "log").glob("bug-*"))
    assert not list((laptop.folder / "run" / "jlr").glob("*.socket"))
