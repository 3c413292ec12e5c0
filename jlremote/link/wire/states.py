"""The states of a link and its forwards, in words for people."""

from __future__ import annotations

import copy
import time
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from jlremote.errors import JlrError


class State(StrEnum):
    """The state of a link, a forward or a session."""

    CONNECTING = "connecting"
    UP = "up"
    RECONNECTING = "reconnecting"
    NEEDS_AUTH = "needs-auth"
    DOWN = "down"
    JUPYTER_DEAD = "jupyter-dead"
    CONTAINER_GONE = "container-gone"
    CONTAINER_STOPPED = "container-stopped"
    PAUSED = "paused"
    RESTARTING = "restarting"
    RESTARTED = "restarted"
    STOPPED = "stopped"
    IDLE_STOPPED = "idle-stopped"
    # of a session that is a job of a scheduler
    QUEUED = "queued"
    STARTING = "starting"
    JOB_ENDED = "job-ended"
    # of a session that only its host knows
    RUNNING = "running"
    # of a further port only
    CLOSED = "closed"
    TAKEN = "taken"


@dataclass(frozen=True)
class Condition:
    """A state, since when (seconds since the epoch), and the cause if something went wrong."""

    state: State
    error: JlrError | None = None
    since: float = field(default_factory=time.time)

    def then(self, state: State, error: JlrError | None = None) -> Condition:
        """Return the next condition; `since` changes only with the state."""
        since = self.since if state is self.state else time.time()
        return Condition(state, None if error is None else without_history(error), since)

    def to_json(self) -> dict[str, Any]:
        error = self.error
        return {
            "state": str(self.state),
            "since": self.since,
            "detail": error.message if error else None,
            "hint": error.hint if error else None,
        }


def without_history(error: JlrError) -> JlrError:
    """Return a copy of an error without traceback and causes.

    A stored error would keep all objects of its frames alive, and grow each time it is raised.
    """
    return copy.copy(error)
