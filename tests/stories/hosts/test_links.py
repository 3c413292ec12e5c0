"""Links: reached with the ssh configuration of their sessions, and the states they are in."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import cast

import pytest

from jlremote.errors import ConnectionRefused, JlrError, NameNotResolved, NeedsAuthentication, Usage
from jlremote.hosts import links
from jlremote.hosts.context import Context, known_way
from jlremote.hosts.links import Unreached, status_of
from jlremote.laptop import sessions
from jlremote.laptop.sessions import SessionRecord
from jlremote.link.client.call import LinkStuck
from jlremote.link.client.link import Link, LinkEvents
from jlremote.link.wire.protocol import OtherVersion
from jlremote.link.wire.states import LinkStatus
from jlremote.place.clusters.slurm import SLURM
from jlremote.place.host.contract import Completed, Steps
from jlremote.place.host.shell_text import command_line
from jlremote.selection import destruction
from tests.stories.parts import Notes, context


@pytest.fixture(autouse=True)
def runtime(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))


def record(host: str, name: str, config: Path | None = None) -> None:
    path = None if config is None else str(config)
    sessions.save(SessionRecord(host, name, "docker", 8888, ssh_config=path))


def test_a_host_keeps_the_ssh_configuration_of_its_sessions(tmp_path: Path) -> None:
    config = tmp_path / "ssh_config"
    config.touch()
    record("dgx", "cont1", config)
    record("lab", "cont1")
    assert known_way("dgx", context()).ssh_config == config
    assert known_way("lab", context()).ssh_config is None


@pytest.mark.parametrize(
    ("host", "ended"), [(None, ["dgx", "lab"]), ("dgx", ["dgx"]), ("other", ["other"])]
)
def test_disconnect_ends_the_links_to_a_host_or_to_all_hosts_of_sessions(
    monkeypatch: pytest.MonkeyPatch, host: str | None, ended: list[str]
) -> None:
    for where, name in (("dgx", "cont1"), ("dgx", "cont2"), ("lab", "cont1")):
        record(where, name)
    monkeypatch.setattr(Link, "shut_down", lambda _: True)
    assert list(destruction.disconnect(host, context(), yes=False)) == ended


def test_a_link_that_is_stuck_stays_disconnected_once_its_process_goes_on(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def stuck(_: Link) -> LinkStatus:
        raise LinkStuck("the link to `dgx` does not answer")

    record("dgx", "cont1")
    monkeypatch.setattr(Link, "status", stuck)
    with pytest.raises(LinkStuck):
        list(destruction.disconnect("dgx", context(), yes=False))
    assert links.link_to("dgx", context()).disconnected


UNKNOWN = "is neither a host nor a session that is known here"


@pytest.mark.parametrize(
    ("typed", "message", "hint"),
    [
        ("dxg", f"`dxg` {UNKNOWN}: `dxg` has no address", "did you mean `dgx`?"),
        ("me@gup", f"`me@gup` {UNKNOWN}: `me@gup` has no address", "did you mean `me@gpu`?"),
        ("cont2", f"`cont2` {UNKNOWN}: `cont2` has no address", "did you mean `dgx/cont1`?"),
        ("xyz", f"`xyz` {UNKNOWN}: `xyz` has no address", "look it up"),
        ("gpu", "`gpu` has no address", "look it up"),
    ],
)
def test_a_name_without_an_address_is_told_with_the_host_that_was_meant(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, typed: str, message: str, hint: str
) -> None:
    unknown = NameNotResolved(f"`{typed}` has no address", hint="look it up")
    explained: list[JlrError] = []

    def told(*values: object, **_: object) -> None:
        [events] = [value for value in values if isinstance(value, LinkEvents)]
        explained.append(events.explain(unknown))

    monkeypatch.setattr(links, "Link", told)
    config = tmp_path / "ssh_config"
    config.write_text("Host gpu\n  HostName gpu.lab.org\n")
    record("dgx", "cont1")
    asked = replace(context(), ssh_config=config)
    links.link_to(typed, asked)
    assert [(error.message, error.hint) for error in explained] == [(message, hint)]
    assert explained[0].exit_code == (5 if typed == "gpu" else 6)


class Cluster:
    """A host whose `squeue` exits with a status; each script on it is silent for some time."""

    name = "zih"

    def __init__(self, status: int, told: Context) -> None:
        self.status = status
        self.asked: list[str] = []
        self._told = told

    def run(self, steps: Steps, **_: object) -> dict[str, Completed]:
        self.asked += steps.values()
        for text in steps.values():
            self.silent(text)
        return {name: Completed(self.status, "", "") for name in steps}

    def silent(self, script: str) -> None:
        links._expect_answer(cast(Link, self), script, self._told)


@pytest.mark.parametrize(("status", "notes"), [(1, 1), (0, 0)], ids=["silent", "slow"])
def test_a_scheduler_that_a_silent_script_waits_for_is_tried_and_told_once(
    monkeypatch: pytest.MonkeyPatch, status: int, notes: int
) -> None:
    monkeypatch.setattr(links, "_noted_waiting", set())
    told = Notes()
    host = Cluster(status, context(told))
    host.silent("sleep 60")
    assert host.asked == []
    for _ in range(2):
        host.silent(command_line(("sh", "-c", SLURM.queue())))
    assert len(host.asked) == 2 - notes
    assert told.notes == ["Slurm does not answer on `zih` so far; still asking"] * notes


class FakeLink:
    """A link that fails to connect, and tells its own state if it still runs."""

    def __init__(self, failure: JlrError | None, own: LinkStatus | None) -> None:
        self.failure = failure
        self.own = own

    def status(self, *, connect: bool = False, patience: float | None = None) -> LinkStatus:
        if connect and self.failure is not None:
            raise self.failure
        if self.own is None:
            raise JlrError("no link runs")
        return self.own


def state_of(failure: JlrError | None, own: LinkStatus | None = None) -> LinkStatus | Unreached:
    return status_of(cast(Link, FakeLink(failure, own)))


def status(state: str) -> LinkStatus:
    return LinkStatus(state, 0.0, None, (), ())


EPOCH = "1970-01-01T00:00:00Z"


@pytest.mark.parametrize(
    ("failure", "own", "expected"),
    [
        (NeedsAuthentication("a password"), None, ("needs-auth", None)),
        (NeedsAuthentication("a password"), status("needs-auth"), ("needs-auth", EPOCH)),
        (NeedsAuthentication("a password"), status("connecting"), ("needs-auth", None)),
        (ConnectionRefused("no"), None, ("down", None)),
        (ConnectionRefused("no"), status("reconnecting"), ("reconnecting", EPOCH)),
        (Usage("the ssh config is gone"), status("down"), ("down", EPOCH)),
        (LinkStuck("no answer"), status("up"), ("down", None)),
    ],
)
def test_a_link_without_a_connection_says_why(
    failure: JlrError, own: LinkStatus | None, expected: tuple[str, str | None]
) -> None:
    assert state_of(failure, own) == Unreached(*expected, failure.message)


def test_a_link_of_another_version_says_what_to_do_and_does_not_end_a_list() -> None:
    told = state_of(OtherVersion("too new", hint="`jlr open SESSION`"), status("up"))
    assert told == Unreached("down", None, "too new; `jlr open SESSION`")
