"""What can be told of a link whose host is not reached."""

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

# How long a list waits for a link that lost its host and calls it again.
PATIENCE_SECONDS = 4.0


@dataclass(frozen=True)
class Unreached:
    """Why there is no connection; see `SessionReport`."""

    state: str
    since: str | None
    detail: str | None


# A list shows that a host asks for something, and does not ask in its name.
ASKS_NOTHING = NeverAsks("`jlr status SESSION` in a terminal asks you")


def connected(link: Link) -> LinkStatus:
    """Return the status of a link once it is connected."""
    return link.status(connect=True, patience=PATIENCE_SECONDS)


def status_of(link: Link, ask: Callable[[Link], LinkStatus] = connected) -> LinkStatus | Unreached:
    """Return the status that a link has when it was asked for it, or why it could not connect."""
    try:
        return ask(link)
    except Authentication as refused:
        return _unreached(link, State.NEEDS_AUTH, refused)
    except LinkStuck as stuck:  # to ask it anything would only take as long again
        return Unreached(State.DOWN, None, stuck.message)
    except (Unreachable, Usage) as gone:  # usage: the ssh config may be gone by now
        return _unreached(link, None, gone)


def _unreached(link: Link, state: State | None, why: JlrError) -> Unreached:
    """Return what the link says of itself; does it still try?"""
    try:
        told = link.status()
    except JlrError:
        return Unreached(state or State.DOWN, None, why.message)
    same = state in (None, told.state)
    return Unreached(state or told.state, utc(told.since) if same else None, why.message)
