"""The state of a link, also of one that is not connected."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from jlremote.errors import Authentication, JlrError, Unreachable, Usage
from jlremote.link.client.dial import LinkStuck
from jlremote.link.client.link import Link
from jlremote.link.wire.states import State
from jlremote.link.wire.status import LinkStatus
from jlremote.questions import NeverAsks
from jlremote.times import utc

# How long a list waits for a link that is reconnecting.
PATIENCE_SECONDS = 4.0


@dataclass(frozen=True)
class Unreached:
    """Why a link is not connected; the fields are those of `SessionReport`."""

    state: str
    since: str | None
    detail: str | None


# A list shows that a host asks for something, and does not ask the user.
ASKS_NOTHING = NeverAsks("`jlr status SESSION` in a terminal asks you")


def connected(link: Link) -> LinkStatus:
    """Return the status of a link once it is connected."""
    return link.status(connect=True, patience=PATIENCE_SECONDS)


def status_of(link: Link, ask: Callable[[Link], LinkStatus] = connected) -> LinkStatus | Unreached:
    """Return the status of a link, or why it is not connected."""
    try:
        return ask(link)
    except Authentication as refused:
        return _unreached(link, State.NEEDS_AUTH, refused)
    except LinkStuck as stuck:  # the next question would only take as long again
        return Unreached(State.DOWN, None, stuck.message)
    except (Unreachable, Usage) as gone:  # Usage: the ssh config may be gone by now
        return _unreached(link, None, gone)


def _unreached(link: Link, state: State | None, why: JlrError) -> Unreached:
    """Describe a link that is not connected, by its own state where it still runs."""
    try:
        told = link.status()
    except JlrError:
        return Unreached(state or State.DOWN, None, why.message)
    same = state in (None, told.state)
    return Unreached(state or told.state, utc(told.since) if same else None, why.message)
