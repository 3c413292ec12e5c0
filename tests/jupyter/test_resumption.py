"""A page whose connection is reset again and again: it gets each message of its kernel once."""

from __future__ import annotations

import json
import random
import re
import socket
import struct
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from playwright.sync_api import BrowserContext, expect
from websocket import (
    WebSocket,
    WebSocketConnectionClosedException,
    WebSocketTimeoutException,
    create_connection,
)

from jlremote.errors import NotFound
from jlremote.jupyter.api import JupyterApi, KernelSocket
from jlremote.kernels.remote_kernel import Message, RemoteKernel
from tests.jupyter.local_server import LocalServer, local_server
from tests.jupyter.parts import AGES
from tests.lab.browser import SECONDS, open_notebook, outputs, run_cell
from tests.lab.containers import ContainerFactory
from tests.lab.laptop import Laptop
from tests.lab.line import Line
from tests.lab.programs import PATIENCE, wait_until
from tests.link.fakes import new_server
from tests.long import LONG
from tests.sessions.parts import Session, started

pytestmark = pytest.mark.lab  # JupyterLab itself runs
RESET = struct.pack("ii", 1, 0)  # SO_LINGER: the end is a reset, and what is under way is lost
UNTIL = """\
import itertools, os, time
for n in itertools.count():
    print("line", n, flush=True)
    if os.path.exists({stop!r}): break
    time.sleep(0.002)"""


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalServer]:
    with local_server(tmp_path_factory.mktemp("server")) as started:
        yield started


@pytest.fixture
def kernel(server: LocalServer) -> str:
    """Return the id of a new kernel."""
    return str(server.ask("api/kernels", {"name": "python3"})["id"])


class Client:
    """A page of a server, as far as the kernel's WebSocket goes."""

    def __init__(self, server: LocalServer | Session, kernel: str) -> None:
        self.server = server
        self.path = f"{server.base}api/kernels/{kernel}/channels?session_id={uuid4().hex}"
        self.messages: list[dict[str, Any]] = []
        self.socket: WebSocket | None = None

    @property
    def address(self) -> str:
        return f"{self.path}&received={len(self.messages)}"

    def connect(self) -> None:
        header = [f"Authorization: token {self.server.token}"]
        self.socket = create_connection(f"ws://{self.address}", header=header, timeout=60)

    def read(self, seconds: float) -> None:
        """Take what comes within that time; connect again where the connection ends."""
        until = time.monotonic() + seconds
        while (left := until - time.monotonic()) > 0:
            assert self.socket is not None
            self.socket.settimeout(min(left, 0.1))  # a ping that comes meanwhile begins it anew
            with suppress(WebSocketTimeoutException):
                try:
                    self.take(self.socket.recv())
                except (WebSocketConnectionClosedException, OSError):
                    self.reset()
                    self.connect()

    def take(self, data: str | bytes) -> None:
        if not data:  # the server has closed it
            raise ConnectionError
        self.messages.append(json.loads(data))

    def read_until(self, done: Any) -> None:
        until = time.monotonic() + PATIENCE
        while not any(map(done, self.messages)):
            assert time.monotonic() < until, "it does not come"
            known = len(self.messages)
            self.read(0.2)
            if len(self.messages) > known:  # a kernel may have printed much meanwhile
                until = time.monotonic() + PATIENCE

    def reset(self) -> None:
        assert self.socket is not None
        if self.socket.sock is not None:
            self.socket.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)
            self.socket.sock.close()

    def reset_early(self, seconds: float) -> None:
        """Ask for a connection, and be gone before, or just when, it is open."""
        address, _, path = self.address.partition("/")
        host, _, port = address.partition(":")
        with socket.create_connection((host, int(port)), timeout=60) as raw:
            raw.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)
            lines = (
                f"GET /{path} HTTP/1.1",
                f"Host: {address}",
                f"Authorization: token {self.server.token}",
                "Connection: Upgrade",
                "Upgrade: websocket",
                "Sec-WebSocket-Version: 13",
                "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==",
            )
            raw.sendall("".join(f"{line}\r\n" for line in (*lines, "")).encode())
            time.sleep(seconds)

    def run(self, code: str) -> str:
        assert self.socket is not None
        header = {"msg_id": uuid4().hex, "msg_type": "execute_request", "version": "5.3"}
        content = {"code": code, "silent": False, "store_history": True, "allow_stdin": False}
        message = {"header": header, "parent_header": {}, "metadata": {}, "content": content}
        self.socket.send(json.dumps(message | {"channel": "shell"}))
        return header["msg_id"]

    def lines(self) -> list[int]:
        """Return the numbers of the lines in the order in which they came."""
        texts = (one["content"]["text"] for one in self.messages if one["msg_type"] == "stream")
        return [int(line.split()[1]) for line in "".join(texts).splitlines()]


def answers(kind: str, request: str) -> Any:
    return lambda one: (one["msg_type"], one["parent_header"].get("msg_id")) == (kind, request)


def shaken(page: Client, stop: Path, resets: int, seed: int, end: Any = Path.touch) -> str:
    """Run a cell under resets at random moments, to its end, and return the request."""
    chance = random.Random(seed)
    page.connect()
    request = page.run(UNTIL.format(stop=str(stop)))
    page.read_until(lambda one: one["msg_type"] == "stream")
    for _ in range(resets):
        page.reset()
        if chance.random() < 0.5:
            page.reset_early(chance.random() * 0.02)
        page.connect()
        page.read(chance.random() * 0.03)
    end(stop)
    page.read_until(answers("execute_reply", request))
    page.read(0.5)
    page.reset()
    return request


@pytest.mark.parametrize("resets", [100, LONG(1000)])
def test_resets_at_random_moments_lose_and_double_no_message(
    server: LocalServer, kernel: str, tmp_path: Path, resets: int
) -> None:
    page = Client(server, kernel)
    request = shaken(page, tmp_path / "stop", resets, seed=33)
    assert page.lines() == list(range(len(page.lines())))
    assert len(page.lines()) > resets
    assert sum(map(answers("execute_reply", request), page.messages)) == 1


# As many times faster than in a session: a page that stands still for 25 s, and one for 60 s.
FASTER = 20
STILL, DEAD = 25 / FASTER, 60 / FASTER


def test_a_page_that_stands_still_for_25_s_is_not_thrown_out_and_a_dead_one_is(
    tmp_path: Path,
) -> None:
    with local_server(tmp_path / "server", FASTER) as server:
        page = Client(server, server.ask("api/kernels", {"name": "python3"})["id"])
        page.connect()
        stop, same = tmp_path / "stop", page.socket
        request = page.run(UNTIL.format(stop=str(stop)))
        page.read_until(lambda one: one["msg_type"] == "stream")
        time.sleep(STILL)
        stop.touch()
        page.read_until(answers("execute_reply", request))
        assert page.socket is same
        assert page.lines() == list(range(len(page.lines())))
        time.sleep(DEAD)
        page.read(STILL)
        assert page.socket is not same
        page.reset()


@pytest.mark.parametrize("name", ["Notebook 6", LONG("JupyterLab 2"), LONG("JupyterLab 3")])
def test_resets_lose_and_double_nothing_of_an_older_jupyter(
    laptop: Laptop, container: ContainerFactory, name: str
) -> None:
    here = container("lab/ages", options=AGES[name].options)
    session = started(laptop, here)
    page = Client(session, session.ask("api/kernels", {"name": "python3"})["id"])
    end = lambda stop: here.execute("touch", str(stop))  # noqa: E731
    request = shaken(page, Path("/tmp/stop"), 50, seed=37, end=end)
    assert page.lines() == list(range(len(page.lines())))
    assert len(page.lines()) > 50
    assert sum(map(answers("execute_reply", request), page.messages)) == 1


@pytest.mark.long
def test_cuts_at_random_moments_cost_the_bridge_of_a_local_jupyter_no_message(
    server: LocalServer, kernel: str, tmp_path: Path
) -> None:
    """`jlr local kernels` counts what it has received as a page does."""
    chance, page, stop = random.Random(38), Client(server, kernel), tmp_path / "stop"
    line = Line(int(server.base.partition("/")[0].rpartition(":")[2]))
    path = f"/{server.base.partition('/')[2]}"
    api = JupyterApi(line.port, replace(new_server(), base_url=path, token=server.token))
    over, texts = threading.Event(), ""

    def reach() -> JupyterApi:
        if over.is_set():
            raise NotFound("the test is over")
        return api

    remote = RemoteKernel(kernel, api, reach, lambda: None)
    try:
        remote.begin()
        assert isinstance(remote.events.get(timeout=60), KernelSocket)
        page.connect()
        page.run(UNTIL.format(stop=str(stop)))
        for _ in range(30):
            time.sleep(chance.random() * 0.1)
            line.cut()
        stop.touch()
        page.read_until(lambda one: one["msg_type"] == "execute_reply")
        page.reset()
        while f"line {page.lines()[-1]}\n" not in texts:
            event = remote.events.get(timeout=60)
            if isinstance(event, Message) and event.kind == "stream":
                texts += event.content["text"]
    finally:
        over.set()
        line.close()
    assert [int(one.split()[1]) for one in texts.splitlines()] == page.lines()


@pytest.mark.timeout(600)
@pytest.mark.parametrize("cuts", [50, LONG(1000)])
def test_cuts_at_random_moments_cost_jupyterlabs_page_no_line_and_show_none_twice(
    server: LocalServer, file_chromium: BrowserContext, tmp_path: Path, cuts: int
) -> None:
    chance, stop = random.Random(36), tmp_path / "stop"
    line = Line(int(server.base.partition("/")[0].rpartition(":")[2]))
    try:
        page = file_chromium.new_page()
        here = server.url.replace(f":{line.target}/", f":{line.port}/")
        open_notebook(page, here)
        run_cell(page, UNTIL.format(stop=str(stop)).replace("0.002", "0.02"))
        wait_until(lambda: "line 9" in outputs(page), "the first lines")
        for _ in range(cuts):
            line.cut()
            page.wait_for_timeout(chance.random() * 300)
        stop.touch()
        prompt = page.locator(".jp-Notebook .jp-InputPrompt").first
        expect(prompt).to_have_text("[1]:", timeout=SECONDS)
        seen = [int(found) for found in re.findall(r"line (\d+)", outputs(page))]
        assert seen == list(range(len(seen)))
        assert len(seen) > cuts
    finally:
        line.close()


DIES = """\
import os
with open(get_ipython().profile_dir.startup_dir + "/slow.py", "w") as file:
    file.write("import os, time; os.remove(__file__); time.sleep(600)")
os.kill(os.getpid(), 9)"""


def test_a_kernel_that_died_is_busy_no_more_before_the_next_one_says_that_it_starts(
    server: LocalServer, kernel: str
) -> None:
    client = Client(server, kernel)
    client.connect()
    client.run(DIES)
    client.read_until(lambda told: told["content"].get("execution_state") == "restarting")
    client.reset()
    assert server.ask(f"api/kernels/{kernel}")["execution_state"] == "starting"
