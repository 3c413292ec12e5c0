"""The laptop's side of a command: its ssh configuration, questions and progress."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from jlremote.laptop import sessions
from jlremote.questions import Asker

if TYPE_CHECKING:
    from jlremote.link.client.link import Link


class Progress(Protocol):
    """The receiver of a command's progress: `cli` shows it, tests collect it."""

    def step(self, title: str) -> AbstractContextManager[None]:
        """Begin a step; the end of the `with` block ends it, an exception as failed."""

    def waiting(self, title: str, *, long: bool) -> AbstractContextManager[None]:
        """Show a title while the `with` block lasts, or an open step; at once if it is `long`.

        Any thread may wait, and nothing is left of it on a terminal.
        """

    def advance(self, text: str) -> None:
        """Replace the short text that says how far the innermost step has come."""

    def note(self, text: str) -> None:
        """Report a fact that is not a step."""

    def announce(self, title: str, text: str) -> None:
        """Send a notice to the desktop, else by the terminal's bell and title."""

    def detail(self, text: str) -> None:
        """Report a detail (shown with `--verbose`)."""

    def command(self, text: str) -> None:
        """Report a command that is run on the host (shown with `--verbose`)."""


@dataclass(frozen=True)
class Context:
    """The laptop's side of a command."""

    ssh_config: Path | None  # ssh's `-F`, `None` for the user's own configuration
    asker: Asker  # answers questions, or raises `NeedsAuthentication`
    progress: Progress
    # Restores the forwards and mounts of the host's last link on a new one. It takes the link, its
    # ssh configuration, a session to leave out, and the progress; `cli` passes it in, because
    # forwards and mounts are rooms above this one.
    restore: Callable[[Link, Path | None, str | None, Progress], None]


def known_way(host: str, context: Context) -> Context:
    """Return the context with the ssh configuration of the host's sessions, unless it has one."""
    if context.ssh_config is not None:
        return context
    used = [Path(r.ssh_config) for r in sessions.load_all() if r.host == host and r.ssh_config]
    return replace(context, ssh_config=next((path for path in used if path.exists()), None))
