"""Reports of sessions, from a record, a forward, a lost host, or another laptop."""

from __future__ import annotations

from dataclasses import replace

import pytest

from jlremote.hosts.links import Unreached
from jlremote.jupyter.api import Access, Kernel
from jlremote.jupyter.presence import Present
from jlremote.laptop.sessions import PortRecord, SessionRecord
from jlremote.link.wire.status import ForwardStatus
from jlremote.listing.session_report import of_forward, of_present, of_record, of_unreached
from tests.link.fakes import new_endpoint

RECORD = SessionRecord("dgx", "cont1", "docker", 8901, image="torch", gpus="all")
FORWARD = ForwardStatus("cont1", None, 8901, "up", 0.0, None, new_endpoint(), None)
EPOCH = "1970-01-01T00:00:00Z"


def test_a_record_is_reported_with_its_state() -> None:
    known = {"name": "cont1", "host": "dgx", "local_port": 8901, "image": "torch", "gpus": "all"}
    report = of_record(RECORD, "stopped")
    assert vars(report).items() >= (known | {"container": "cont1", "url": None}).items()
    assert of_record(replace(RECORD, runtime="none"), "up").container is None


def test_a_forward_that_is_up_has_a_url_with_the_token() -> None:
    report = of_forward(RECORD, FORWARD)
    assert report.url == "http://127.0.0.1:8901/cont1/lab?token=secret"
    assert (report.state, report.since, report.detail, report.access) == ("up", EPOCH, None, None)


@pytest.mark.parametrize(
    ("access", "detail"),
    [(Access.TOKEN, None), (Access.OPEN, "`dgx`"), (Access.PASSWORD, "password")],
)
def test_the_detail_explains_a_server_without_a_token(access: Access, detail: str | None) -> None:
    report = of_forward(RECORD, FORWARD, access)
    assert report.access == str(access)
    assert report.detail is None if detail is None else detail in (report.detail or "")


def test_a_forward_that_is_not_up_has_neither_url_nor_access() -> None:
    dead = replace(FORWARD, state="jupyter-dead", detail="Jupyter is gone")
    report = of_forward(RECORD, dead, Access.OPEN)
    assert (report.state, report.detail) == ("jupyter-dead", "Jupyter is gone")
    assert (report.url, report.access) == (None, None)


def test_an_idle_stop_is_reported_only_if_there_is_one() -> None:
    server = FORWARD.server
    timed = replace(FORWARD.endpoint, server=replace(server, idle_stop=3600))
    assert of_forward(RECORD, replace(FORWARD, endpoint=timed)).idle_stop == 3600
    assert of_forward(RECORD, FORWARD).idle_stop is None


def test_a_session_of_an_unreached_host_has_the_links_state_also_for_its_ports() -> None:
    record = replace(RECORD, ports=(PortRecord(6006, 7001),))
    report = of_unreached(record, Unreached("down", EPOCH, "connection refused"))
    assert (report.state, report.since, report.detail) == ("down", EPOCH, "connection refused")
    assert [(port.port, port.state) for port in report.ports] == [(6006, "down")]


@pytest.mark.parametrize(("jupyter", "state"), [(True, "running"), (False, "stopped")])
def test_a_session_of_another_laptop_has_no_local_port(jupyter: bool, state: str) -> None:
    report = of_present("dgx", Present("cont1", "podman", jupyter, "torch", "0,1"))
    assert (report.state, report.container, report.gpus) == (state, "cont1", "0,1")
    assert (report.url, report.local_port) == (None, None)
    assert of_present("dgx", Present("cont1", "none", jupyter)).container is None
    assert of_present("dgx", Present("c", "docker", jupyter, halted="paused")).state == "paused"


def test_the_json_form_has_all_fields_in_a_fixed_order() -> None:
    report = replace(of_record(RECORD, "up"), kernels=(Kernel("a.ipynb", "idle", EPOCH),))
    told = report.to_json()
    assert list(told) == [
        *("name", "host", "container", "runtime", "state", "since", "detail", "url"),
        *("page", "local_port", "image", "gpus", "kernels", "access", "idle_stop", "awake"),
        *("job", "node", "time_left", "reason", "mounts", "ports"),
    ]
    asked = {"notebook": "a.ipynb", "state": "idle", "last_activity": EPOCH}
    assert told["kernels"] == [asked | {"id": "", "running": None}]
