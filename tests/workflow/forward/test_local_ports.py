"""Local ports: their order, and the holder of one that is taken."""

from __future__ import annotations

import os
import socket
from pathlib import Path

import pytest

from jlremote.storage import sessions
from jlremote.storage.sessions import PortRecord, SessionRecord
from jlremote.workflow.forward.local_ports import candidates, first, first_candidate, taken

ONE = SessionRecord("dgx", "one", "docker", 8888, ports=(PortRecord(6006, 6010),))
TWO = SessionRecord("lab", "two", "docker", 8890)


@pytest.fixture(autouse=True)
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))


def test_an_exact_port_is_the_only_one_to_try() -> None:
    sessions.save(ONE)
    assert list(candidates("dgx", "one", None, 9999)) == [9999]


def test_ports_of_other_sessions_are_left_out_though_their_links_are_down() -> None:
    for record in (ONE, TWO):
        sessions.save(record)
    assert list(candidates("dgx", "three", None, None))[:3] == [8889, 8891, 8892]
    assert 6010 not in list(candidates("dgx", "three", 6006, None))


def test_its_own_port_comes_first() -> None:
    for record in (ONE, TWO):
        sessions.save(record)
    assert list(candidates("dgx", "one", None, None))[:2] == [8888, 8889]
    assert list(candidates("dgx", "one", 6006, None))[:2] == [6010, 6006]
    assert list(candidates("dgx", "one", 7860, None))[:2] == [7860, 7861]


def test_the_first_candidate_is_the_port_that_a_start_would_try() -> None:
    assert first_candidate("dgx", "one") == 8888
    sessions.save(ONE)
    assert first_candidate("dgx", "two") == 8889


@pytest.mark.parametrize(
    ("port", "expected"), [(None, 8888), (80, 1104), (1023, 2047), (1024, 1024)]
)
def test_a_privileged_port_is_moved_to_where_anyone_may_listen(
    port: int | None, expected: int
) -> None:
    assert first(port) == expected


def test_ports_end_with_the_last_one_that_tcp_has() -> None:
    assert list(candidates("dgx", "one", 65534, None)) == [65534, 65535]


def test_another_session_is_named_as_the_holder_of_a_port() -> None:
    sessions.save(ONE)
    for port in (8888, 6010):
        assert f"port {port} is taken by the session `dgx/one`" in str(taken(port, "lab", "two"))


def test_a_process_is_named_as_the_holder_of_a_port() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        busy = taken(listener.getsockname()[1], "dgx", "one")
    assert f"(process {os.getpid()})" in busy.message
    assert busy.exit_code == 7


def test_an_unknown_holder_is_left_out() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    assert taken(port, "dgx", "one").message == f"port {port} is taken"
