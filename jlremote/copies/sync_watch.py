"""`jlr sync --watch`: send what changes in a folder as it is saved."""

from __future__ import annotations

import time
from pathlib import PurePath

from jlremote.copies.exchange import CopyPlace, CopyReport
from jlremote.copies.local_tree import NEVER
from jlremote.copies.sync import SyncRequest, check_conflicts, exchanged, named
from jlremote.errors import JlrError
from jlremote.hosts.context import Context

_QUIET_MS = 50  # without a change, before what has changed is sent
_MOST_MS = 300  # that changes are collected
_LOOK_MS = 500
_AGAIN_SECONDS = 5.0  # after a failure


def watch(request: SyncRequest, context: Context) -> None:
    """Sync at each change of the folder, until Ctrl-C; what failed is tried again."""
    from watchfiles import watch as changes  # loads slowly

    watching = _Watching(request, context)
    due: float | None = 0.0  # what was saved before the watch began
    try:
        for changed in changes(
            request.local,
            watch_filter=lambda _, path: not set(PurePath(path).parts) & set(NEVER),
            debounce=_MOST_MS,
            step=_QUIET_MS,
            rust_timeout=_LOOK_MS,
            yield_on_timeout=True,
        ):
            if changed or (due is not None and time.monotonic() >= due):
                due = None if watching.sync() else time.monotonic() + _AGAIN_SECONDS
    except OSError as failure:
        why = str(failure).partition(". about ")[0]  # as where inotify reached its limit
        more = "`sudo sysctl fs.inotify.max_user_watches=1000000` lets it watch more folders"
        raise JlrError(f"cannot watch `{request.local}`: {why}", hint=more) from failure


class _Watching:
    """The syncs of one folder; a trouble that lasts is told once."""

    def __init__(self, request: SyncRequest, context: Context) -> None:
        self._request, self._note = request, context.progress.note
        self._place = CopyPlace(request.where, context)
        self._report = CopyReport(context.progress)
        self._report.advance = lambda _: None  # no step is open
        self._trouble = ""

    def sync(self) -> bool:
        """Sync once, and return whether that was possible."""
        try:
            done = exchanged(self._request, self._report, self._place)
            for act, names in (("sent", done.sent), ("deleted", done.deleted)):
                if names:
                    self._note(f"{act} {named(names)}")
            check_conflicts(self._request, done)
        except JlrError as failure:
            trouble = "; ".join(filter(None, (failure.message, failure.hint)))
            if trouble != self._trouble:
                self._note(trouble)
            self._trouble = trouble
            return False
        self._trouble = ""
        return True
