"""The reports of a session's further ports."""

from __future__ import annotations

import json

from jlremote.forwards.address import PortReport, reports
from jlremote.hosts.links import Unreached
from jlremote.jupyter.endpoint import Endpoint
from jlremote.laptop.sessions import PortRecord, SessionRecord
from jlremote.link.wire.status import ForwardStatus
from tests.link.fakes import new_endpoint

PORTS = (PortRecord(6006, 6006), PortRecord(7860, 7861))
RECORD = SessionRecord("dgx", "cont1", "docker", 8888, ports=PORTS)
PLACE = new_endpoint().place


def status(port: int, local: int, state: str = "up", detail: str | None = None) -> ForwardStatus:
    return ForwardStatus("cont1", port, local, state, 0.0, detail, Endpoint(PLACE, port), None)


def test_without_a_connection_the_ports_are_in_the_links_state() -> None:
    why = Unreached("reconnecting", "2026-01-01T00:00:00Z", "no route to host")
    assert reports(RECORD, why) == (
        PortReport(6006, 6006, why.state, why.since, why.detail, "6006-cont1-dgx.localhost"),
        PortReport(7860, 7861, why.state, why.since, why.detail, "7860-cont1-dgx.localhost"),
    )


def test_the_json_form_has_every_fact_and_both_urls() -> None:
    told = PortReport(6006, 6007, "up", "2026-01-01T00:00:00Z", None, "x.localhost")
    assert json.loads(json.dumps(told.to_json())) == {
        "port": 6006,
        "local_port": 6007,
        "state": "up",
        "since": "2026-01-01T00:00:00Z",
        "detail": None,
        "on_host": False,
        "program": None,
        "url": "http://127.0.0.1:6007/",
        "page": "http://x.localhost:6007/",
    }
