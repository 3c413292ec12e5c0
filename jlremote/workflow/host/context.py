"""What every workflow needs of the laptop side."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from jlremote.questions import Asker

if TYPE_CHECKING:
    from jlremote.link.client.link import Link


class Progress(Protocol):
    """Who is told how a workflow gets on; `cli` shows it, tests collect it."""

    def step(self, title: str) -> AbstractContextManager[None]:
        """Enter a step that takes time; leaving it ends it, well or (on an exception) badly."""
        ...

    def advance(self, text: str) -> None:
        """Tell in a few words how far the innermost step has come; the latest word counts."""
        ...

    def note(self, text: str) -> None:
        """Tell something worth knowing that is no step."""
        ...

    def detail(self, text: str) -> None:
        """Tell what only somebody who looks closely wants to know (shown with `-v`)."""
        ...

    def command(self, text: str) -> None:
        """Tell a command that is run on the host (shown with `-v`)."""
        ...


@dataclass(frozen=True)
class Context:
    """What every workflow needs of the laptop side.

    Attributes:
        ssh_config: ssh's `-F`, `None` for the user's own.
        asker: answers questions, or raises `NeedsAuthentication`.
        progress: is told what happens.
        restore: brings back, on a link that has just started, what the last link of its host held;
            told the link, its ssh configuration, and a session to leave out. The rooms that know
            forwards and mounts are above this one, so the command line hands it over.
    """

    ssh_config: Path | None
    asker: Asker
    progress: Progress
    restore: Callable[[Link, Path | None, str | None, Progress], None]
