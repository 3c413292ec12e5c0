"""Reports of sessions, from a record, a forward, a lost host, or another laptop."""

from __future__ import annotations

from dataclasses import replace

import pytest

from jlremote.jupyter.api import Access, Kernel
from jlremote.laptop.sessions import SessionRecord
from jlremote.link.wire.status import ForwardStatus
from jlremote.listing.session_report import of_forward, of_record
from tests.link.fakes import new_endpoint

RECORD = SessionRecord("dgx", "cont1", "docker", 8901, image="torch", gpus="all")
FORWARD = ForwardStatus("cont1", None, 8901, "up", 0.0, None, new_endpoint(), None)
EPOCH = "1970-01-01T00:00:00Z"


@pytest.mark.parametrize(
    ("access", "detail"),
    [(Access.TOKEN, None), (Access.OPEN, "`dgx`"), (Access.PASSWORD, "password")],
)
def test_the_detail_explains_a_server_without_a_token(access: Access, detail: str | None) -> None:
    report = of_forward(RECORD, FORWARD, access)
    assert report.access == str(access)
    assert report.detail is None if detail is None else detail in (report.detail or "")


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
