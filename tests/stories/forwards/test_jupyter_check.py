"""Jupyter's answer through a forward, and the reason where there is none."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, HTTPServer
from threading import Thread
from typing import cast

import pytest

from jlremote.errors import Busy, JlrError, LinkLost
from jlremote.forwards.jupyter_check import wait_for_answer
from jlremote.jupyter import api
from jlremote.jupyter.api import NoAnswer
from jlremote.jupyter.endpoint import Endpoint
from jlremote.link.client.link import Link
from jlremote.link.wire.states import ForwardStatus, LinkStatus
from jlremote.place.host.addresses import own_address
from tests.lab.ports import free_port
from tests.link.fakes import new_endpoint, new_server
from tests.stories.parts import Answering


class FakeLink(Answering):
    """A link that knows why the last connection through a forward was turned away."""

    name = "dgx"

    def __init__(self, failure: str | None = None, *, lost: bool = False) -> None:
        self.failure, self.lost = failure, lost

    def status(self) -> LinkStatus:
        if self.lost:
            raise LinkLost("the link ended")
        return LinkStatus("up", 0.0, None, (forward(1, failure=self.failure),), ())


def forward(local_port: int, *, token: str = "secret", failure: str | None = None) -> ForwardStatus:
    endpoint = Endpoint(new_endpoint().place, 8888, replace(new_server(), token=token))
    return ForwardStatus("cont1", None, local_port, "up", 0.0, None, endpoint, failure)


@contextmanager
def jupyter(
    status: int,
    *,
    knows: str = "cont1-dgx.localhost",
    asked: list[str] | None = None,
    own_too: bool = True,
) -> Iterator[int]:
    """Answer requests with a status, 403 under other names than `knows`; give the port.

    It takes every address of the loopback, and tells its version without credentials, as Jupyter
    does. With `own_too` it listens as a forward does, else on 127.0.0.1 alone.
    """

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            name = self.headers["Host"].partition(":")[0]
            (asked if asked is not None else []).append(f"{name}{self.path}")
            usual = 200 if self.path.endswith("/api") else status
            self.send_response(usual if name == knows or name.startswith("127.") else 403)
            self.end_headers()
            self.wfile.write(b"{}")

        def log_message(self, *what: object) -> None:
            """Say nothing."""

    port = free_port()
    with ExitStack() as stack:
        for address in ("127.0.0.1", own_address(port))[: 1 + own_too]:
            server = stack.enter_context(HTTPServer((address, port), Handler))
            Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
            stack.callback(server.shutdown)
        yield port


def check(local_port: int, link: FakeLink, token: str = "secret") -> str:
    return wait_for_answer(cast(Link, link), forward(local_port, token=token))


@pytest.mark.parametrize(("status", "token"), [(200, "secret"), (200, ""), (403, "")])
def test_an_answer_proves_the_way_also_if_it_asks_for_a_password(status: int, token: str) -> None:
    with jupyter(status) as port:
        check(port, FakeLink(lost=True), token)


@pytest.mark.parametrize("token", ["secret", ""])
def test_a_server_of_another_configuration_is_opened_at_its_ports_own_address(
    token: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with jupyter(200, knows="localhost") as port:
        assert check(port, FakeLink(), token) == own_address(port)
        monkeypatch.setattr(api, "has_own_addresses", lambda: False)
        assert check(port, FakeLink(), token) == "127.0.0.1"


def test_a_server_with_a_password_is_opened_under_the_name_that_it_accepts() -> None:
    with jupyter(403) as port:
        assert check(port, FakeLink(), token="") == "cont1-dgx.localhost"
    with jupyter(403, knows="localhost") as port:
        assert check(port, FakeLink(), token="") == own_address(port)
    with jupyter(403, knows="localhost", own_too=False) as port:
        assert check(port, FakeLink(), token="") == "127.0.0.1"


def test_a_wrong_token_is_no_answer_of_the_sessions_server() -> None:
    with jupyter(403) as port, pytest.raises(JlrError, match="Jupyter answers 403"):
        check(port, FakeLink())


@pytest.mark.parametrize(
    ("failure", "error", "message", "hint"),
    [
        (None, NoAnswer, "no answer from Jupyter", None),
        ("connect failed: refused", NoAnswer, r"\(connect failed: refused\)", None),
        (
            "administratively prohibited",
            JlrError,
            "does not permit connections through its SSH server",
            "`AllowTcpForwarding local`",
        ),
        (
            "8 terminals, mounts and relays run over this connection already",
            Busy,
            "cannot open another connection into a container on `dgx`",
            "`jlr list`",
        ),
    ],
)
def test_the_links_reason_is_told_where_it_knows_one(
    failure: str | None, error: type[JlrError], message: str, hint: str | None
) -> None:
    with pytest.raises(error, match=message) as silent:
        check(1, FakeLink(failure))
    assert hint is None or hint in (silent.value.hint or "")


def test_a_socket_that_is_not_reached_comes_with_what_to_do() -> None:
    there = forward(1)
    server = replace(there.server, port=0, sock="/home/ada/sock")
    on_socket = replace(there, endpoint=replace(there.endpoint, server=server))
    link = cast(Link, FakeLink("administratively prohibited: open failed"))
    with pytest.raises(NoAnswer, match="open failed") as refused:
        wait_for_answer(link, on_socket)
    assert "`AllowStreamLocalForwarding local`" in (refused.value.hint or "")
    assert "`jlr stop dgx/cont1 --force`" in (refused.value.hint or "")
