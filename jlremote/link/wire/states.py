"""The states of a link, in words that a person can read."""

from __future__ import annotations

import copy
import time
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from jlremote.errors import JlrError


class State(StrEnum):
    """What a link, or one of its forwards, is up to."""

    CONNECTING = "connecting"
    UP = "up"
    RECONNECTING = "reconnecting"
    NEEDS_AUTH = "needs-auth"
    DOWN = "down"
    JUPYTER_DEAD = "jupyter-dead"
    CONTAINER_GONE = "container-gone"
    STOPPED = "stopped"
    IDLE_STOPPED = "idle-stopped"
    # of a session that only its host knows
    RUNNING = "running"
    # of a further port only
    CLOSED = "closed"
    TAKEN = "taken"


@dataclass(frozen=True)
class Condition:
    """A state, since when, and why.

    Attributes:
        state: the state.
        error: what went wrong last, where that is why.
        since: seconds since the epoch.
    """

    state: State
    error: JlrError | None = None
    since: float = field(default_factory=time.time)

    def then(self, state: State, error: JlrError | None = None) -> Condition:
        """Return what comes next; as long as the state is the same it is so since the same time."""
        since = self.since if state is self.state else time.time()
        return Condition(state, None if error is None else without_history(error), since)

    def to_json(self) -> dict[str, Any]:
        """Return the condition as it crosses the link's socket."""
        error = self.error
        return {
            "state": str(self.state),
            "since": self.since,
            "detail": error.message if error else None,
            "hint": error.hint if error else None,
        }


def without_history(error: JlrError) -> JlrError:
    """Return the error anew, without traceback and causes.

    One that is kept would keep all that its frames know, and raised again and again it would
    gather one more traceback each time.
    """
    return copy.copy(error)
