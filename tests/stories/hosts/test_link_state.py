"""The state of a link that is connected, waits for the user, or cannot connect."""

from __future__ import annotations

from typing import cast

import pytest

from jlremote.errors import ConnectionRefused, JlrError, NeedsAuthentication, Usage
from jlremote.hosts.links import Unreached, status_of
from jlremote.link.client.dial import LinkStuck
from jlremote.link.client.link import Link
from jlremote.link.wire.protocol import OtherVersion
from jlremote.link.wire.status import LinkStatus


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
