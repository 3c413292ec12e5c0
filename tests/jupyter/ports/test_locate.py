"""A session's server is found again, and nothing else is taken for it."""

from __future__ import annotations

import time
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from jlremote.errors import JlrError
from jlremote.jupyter import locate
from jlremote.jupyter.discovery import Findings
from jlremote.jupyter.endpoint import Server
from jlremote.jupyter.survey import Survey
from jlremote.place.host.addresses import Target
from jlremote.place.host.contract import Completed
from jlremote.place.runtimes.runtime import Container
from tests.jupyter.ports.parts import probed
from tests.link.fakes import new_endpoint, new_server
from tests.place.host.parts import ANYWHERE, ANYWHERE_6, row
from tests.stories.parts import FakeHost

DGX = FakeHost("dgx")
KNOWN = new_endpoint()
PLACE = KNOWN.place
HERE = Container(PLACE.container_id, PLACE.name, running=True, started_at=PLACE.started_at)
HERE = replace(HERE, addresses=("a",), alone_on={"a": "net"})
ANOTHER = replace(new_server(pid=77), port=9999)


def findings(*servers: Server, status: int | None = None, ended: str = "") -> Findings:
    return Findings("/tmp/jlr-0/cont1", "", status, servers, ended)


class Surveys:
    """The surveys that the host gives, one after the other; the last one again and again."""

    def __init__(self) -> None:
        self.found: list[Survey] = []
        self.asked = 0
        self.slept: list[float] = []

    def __call__(self, *_: object) -> Survey:
        self.asked += 1
        return self.found.pop(0) if len(self.found) > 1 else self.found[0]


@pytest.fixture
def surveys(monkeypatch: pytest.MonkeyPatch) -> Surveys:
    made = Surveys()
    monkeypatch.setattr(locate, "survey", made)
    monkeypatch.setattr(time, "sleep", made.slept.append)
    return made


def test_a_server_whose_container_moved_is_followed(surveys: Surveys) -> None:
    moved = replace(HERE, addresses=("172.17.0.9",), alone_on={"172.17.0.9": "net"})
    surveys.found = [Survey(moved, findings(new_server()))]
    target = Target("172.17.0.9", 8888, network="net")
    assert locate.locate(DGX, KNOWN) == replace(KNOWN, target=target)


def test_another_server_with_a_token_is_followed_in_a_container(surveys: Surveys) -> None:
    surveys.found = [Survey(HERE, findings(ANOTHER))]
    found = locate.locate(DGX, KNOWN)
    assert (found.server, found.port) == (ANOTHER, 9999)
    assert found.target == Target("a", 9999, network="net")


@pytest.mark.parametrize(
    ("container", "server"),
    [
        (replace(HERE, addresses=("127.0.0.1",)), ANOTHER),
        (HERE, replace(ANOTHER, token="")),
    ],
    ids=["on the host's network", "without a token"],
)
def test_another_server_is_not_followed_where_it_may_be_another_users(
    container: Container, server: Server, surveys: Surveys
) -> None:
    surveys.found = [Survey(container, findings(server, status=1))]
    with pytest.raises(JlrError, match=r"`cont1` \(process 42\) is gone"):
        locate.locate(DGX, KNOWN)


ON_NODE = replace(HERE, addresses=("127.0.0.1",), node="n1", in_job=True)


@pytest.mark.parametrize(
    ("listening", "status", "state"),
    [
        ((row(ANYWHERE, 8888),), 0, None),
        ((row(ANYWHERE, 8888), row(ANYWHERE_6, 8888, user=1001)), 0, "taken"),
        ((row(ANYWHERE, 8888, user=1001),), 0, "taken"),
        ((), 0, "closed"),
        ((), 255, ""),
    ],
)
def test_a_port_of_a_node_is_no_other_users_or_gets_nothing(
    surveys: Surveys, listening: tuple[str, ...], status: int, state: str | None
) -> None:
    """Another user may listen at IPv6 beside it, and the end of a job is known late."""
    said = Completed(status, probed(*listening, held=None), "no step")
    host: Any = SimpleNamespace(name="zih", run=lambda _: {"look": said})
    known = replace(KNOWN, place=replace(PLACE, runtime_name="slurm"))
    surveys.found = [Survey(ON_NODE, findings(new_server()))]
    if state is None:
        assert locate.locate(host, known).target == Target("n1", 8888, node=True)
        return
    with pytest.raises(JlrError, check=lambda error: error.state == state):
        locate.locate(host, known)
    over = replace(ON_NODE, running=False, halt="its job ended: CANCELLED")
    surveys.found = [surveys.found[0], Survey(over, None)]
    with pytest.raises(JlrError, check=lambda error: error.state == "job-ended"):
        locate.locate(host, known)


def test_a_server_that_is_about_to_end_is_looked_for_until_it_tells_how(surveys: Surveys) -> None:
    leaving = Survey(HERE, findings())
    surveys.found = [leaving, leaving, Survey(HERE, findings(status=0))]
    with pytest.raises(JlrError, check=lambda error: error.state == "stopped"):
        locate.locate(DGX, KNOWN)
    assert surveys.asked == 3
    assert len(surveys.slept) == 2


@pytest.mark.parametrize(
    ("container", "state", "message"),
    [
        (None, "container-gone", "`cont1` is gone: it was removed"),
        (replace(HERE, running=False), "container-stopped", "`cont1` does not run"),
        (replace(HERE, running=False, renamed="c2"), "container-stopped", "`c2` does not run"),
        (replace(HERE, running=False, paused=True), "paused", "is paused"),
        (
            replace(HERE, running=False, restarting=True, halt="its engine is restarting it"),
            "restarting",
            "its engine is restarting it",
        ),
        (replace(HERE, id="decaf"), "container-gone", "replaced by another machine"),
        (
            replace(HERE, started_at="later"),
            "restarted",
            "the container `cont1` was restarted",
        ),
    ],
)
def test_another_container_is_told_from_the_one_of_before(
    container: Container | None, state: str, message: str
) -> None:
    with pytest.raises(JlrError, match=message) as gone:
        locate.same_container("dgx", PLACE, container)
    assert gone.value.state == state
    assert "`j" in (gone.value.hint or "") or "`docker unpause cont1`" in (gone.value.hint or "")
