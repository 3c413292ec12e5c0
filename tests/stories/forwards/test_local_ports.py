"""Local ports: their order, their owners, and the holder of one that is taken."""

from __future__ import annotations

import os
import socket
from contextlib import ExitStack
from dataclasses import replace

import pytest

from jlremote.errors import Busy
from jlremote.forwards import local_ports
from jlremote.forwards.local_ports import (
    candidates,
    check_free,
    claim,
    explained,
    first_candidate,
    first_port,
)
from jlremote.laptop import sessions
from jlremote.laptop.sessions import PortOwner, PortRecord, SessionRecord

ONE = SessionRecord("dgx", "one", "docker", 8888, ports=(PortRecord(6006, 6010),))


def test_a_taken_port_is_refused_at_once_unless_the_session_has_it() -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        with pytest.raises(Busy, match=f"port {port} is in use by .*process {os.getpid()}"):
            check_free(port, "dgx", "one")
        sessions.save(replace(ONE, local_port=port))
        check_free(port, "dgx", "one")
        with pytest.raises(Busy, match="by the session `dgx/one`"):
            check_free(port, "dgx", "two")
    check_free(port, "dgx", None)


def test_a_port_stays_its_sessions_after_its_record_is_gone() -> None:
    sessions.save(ONE)
    for local, port in ((8888, None), (6010, 6006)):
        claim(PortOwner(local, "dgx", "one", port), ExitStack())
    sessions.delete(ONE)
    assert first_candidate("dgx", "two") == 8889
    assert 6010 not in list(candidates("dgx", "two", 6006, None))[:-1]
    assert first_candidate("dgx", "one") == 8888
    assert next(candidates("dgx", "one", 6006, None)) == 6010


def test_a_used_up_range_takes_the_oldest_port_of_a_stopped_session(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(local_ports, "PORTS", 3)
    for local, name in ((8889, "old"), (8888, "running"), (8890, "late")):
        sessions.save(SessionRecord("dgx", name, "none", local, forwarded=name == "running"))
        claim(PortOwner(local, "dgx", name, None), ExitStack())
    assert list(candidates("dgx", "new", None, None)) == [8889, 8890]


def test_an_exact_port_changes_its_owner_and_the_former_one_gets_another() -> None:
    sessions.save(replace(ONE, forwarded=False))
    theirs = PortOwner(8888, "lab", "two", None)
    assert claim(theirs, ExitStack()) == PortOwner(8888, "dgx", "one", None)
    assert first_candidate("dgx", "one") == 8889
    assert first_candidate("lab", "two") == 8888
    assert claim(theirs, ExitStack()) is None


@pytest.mark.parametrize(
    "before", [[], *([PortOwner(8888, "dgx", "one", p)] for p in (None, 6006))]
)
def test_a_start_that_fails_leaves_the_owner_as_it_was(before: list[PortOwner]) -> None:
    for owner in before:
        claim(owner, ExitStack())
    with ExitStack() as undo:
        assert claim(PortOwner(8888, "lab", "two", None), undo) == next(iter(before), None)
    assert sessions.PORT_OWNERS.load_all() == before


def test_the_former_owner_is_told_with_the_site_whose_data_may_be_deleted() -> None:
    told = explained(PortOwner(8888, "dgx", "one", None), "two-lab.localhost:8888")
    assert "port 8888 belonged to `dgx/one`" in told
    assert "`two-lab.localhost:8888`" in told
    further = PortOwner(8888, "dgx", "one", 6006)
    assert "belonged to port 6006 of `dgx/one`" in explained(further, "x")


@pytest.mark.parametrize(
    ("port", "expected"), [(None, 8888), (80, 1104), (1023, 2047), (1024, 1024)]
)
def test_a_privileged_port_is_moved_to_where_anyone_may_listen(
    port: int | None, expected: int
) -> None:
    assert first_port(port) == expected
