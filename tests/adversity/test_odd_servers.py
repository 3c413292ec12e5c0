"""A server that answers nonsense, or without an end, harms nothing but its own line."""

from __future__ import annotations

import itertools
import json
import threading
import time
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from jlremote import times
from jlremote.cli.screen.reports import kernels_in_short
from jlremote.errors import JlrError
from jlremote.jobs import known_jobs
from jlremote.jupyter import api, presence
from jlremote.jupyter.api import JupyterApi, Kernel
from jlremote.place.host.contract import Completed
from jlremote.place.runtimes.engine.kinds import DOCKER
from tests.lab.programs import load
from tests.link.fakes import new_server
from tests.stories.parts import FakeHost

KERNEL = {"id": "k", "name": "python3", "execution_state": "idle", "last_activity": "x"}


class Odd(ThreadingHTTPServer):
    """Answers everything with the same pieces, at a byte's pace if there are many."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.pieces: Iterable[bytes] = ()
        self.over = threading.Event()


class _Handler(BaseHTTPRequestHandler):
    server: Odd

    def do_GET(self) -> None:
        with suppress(OSError):  # the client has gone
            for piece in self.server.pieces:
                self.wfile.write(piece)
                if self.server.over.wait(0.01):
                    return
        self.close_connection = True

    def log_message(self, *_: Any) -> None:
        """Say nothing."""


@pytest.fixture
def odd() -> Iterator[Odd]:
    with Odd() as server:
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        yield server
        server.over.set()
        server.shutdown()


def client(odd: Odd) -> JupyterApi:
    return JupyterApi(odd.server_port, replace(new_server(), token="s3cret"), timeout=0.5)


def whole(body: bytes) -> tuple[bytes, ...]:
    return (b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(body), body)


@pytest.mark.parametrize(
    "body",
    [
        *(b"<html>no JSON</html>", b"[" * 100_000, b"7", b"[7]", b'{"a": 1}', b"[null]", b"\xff"),
        json.dumps([{**KERNEL, "id": []}]).encode(),
        json.dumps([{"kernel": 1}]).encode(),
    ],
)
def test_an_odd_answer_is_an_expected_error(odd: Odd, body: bytes) -> None:
    odd.pieces = whole(body)
    with pytest.raises(JlrError) as error:
        client(odd).kernels()
    assert "s3cret" not in str(error.value)


HEAD = b"HTTP/1.1 200 OK\r\n"


@pytest.mark.parametrize(
    ("begin", "piece"),
    [
        (HEAD + b"Content-Length: 9000000000\r\n\r\n", b" "),
        (HEAD + b"\r\n", b" "),
        (HEAD + b"Transfer-Encoding: chunked\r\n\r\n", b"1\r\n \r\n"),
        (b"", b"HTTP/1.1 100 Continue\r\n\r\n"),
        (HEAD, b"X"),
    ],
)
def test_an_answer_that_never_ends_is_given_up_in_time(
    odd: Odd, begin: bytes, piece: bytes
) -> None:
    odd.pieces = itertools.chain([begin], itertools.repeat(piece))
    began = time.monotonic()
    with pytest.raises(JlrError):
        client(odd).kernels()
    assert time.monotonic() - began < 5 * load()


def test_a_flood_is_given_up_before_it_fills_the_memory(
    odd: Odd, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(api, "MOST_BYTES", 1000)
    odd.pieces = whole(b" " * 5000)
    with pytest.raises(JlrError, match="does not end"):
        client(odd).status()


@pytest.mark.parametrize("moment", ["x", "", "0001-01-01T00:00:00+23:59", "9999-12-31T23:59:59"])
def test_an_odd_time_is_no_reason_to_list_nothing(moment: str) -> None:
    kernel = Kernel("a.ipynb", "idle", moment)
    assert kernels_in_short([kernel]).startswith("idle ")
    assert times.ago(moment)


PRINTED = ("no JSON", "[1]", '[{"Id": 1}]', "{}", '[{"Name": "/a", "Config": {"Labels": "x"}}]')


@pytest.mark.parametrize("printed", PRINTED)
def test_jobs_of_a_host_that_prints_nonsense_are_an_expected_error(printed: str) -> None:
    host: Any = FakeHost("dgx", {"processes": "", "containers": printed})
    if printed == "{}":
        assert known_jobs._all(host, DOCKER) == []
        return
    with pytest.raises(JlrError, match="cannot read the answer of"):
        known_jobs._all(host, DOCKER)


@pytest.mark.parametrize("printed", PRINTED)
def test_sessions_of_an_engine_that_prints_nonsense_leave_the_others(printed: str) -> None:
    listed = Completed(0, f"{printed}\x1e", "")
    host: Any = FakeHost("dgx", {"containers": listed, "none": "", "apptainer": ""})
    found = presence.look(host, DOCKER)
    assert found.sessions == ()
    assert isinstance(found.engine_failure, JlrError) == (printed != "{}")
