"""What a job is, and what whoever keeps it must know; all of it text for `sh`, without effects."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol


@dataclass(frozen=True)
class Job:
    """A command that runs on a host by itself, as it is right now.

    Attributes:
        name: how a person calls it; its container's where it has one of its own.
        state: `running`, `ended`, `created` (not begun), or `lost`: nobody saw how it ended.
        command: as it can be pasted.
        exit_code: how it ended, `None` unless it did.
        since: when it began, in seconds since the epoch.
        ended: when it ended, likewise.
        container: where it runs, `None` for the host itself.
        gpus: as they were asked for.
        detail: why it ended, where that is known and not plain.
    """

    name: str
    state: str
    command: str
    exit_code: int | None = None
    since: float | None = None
    ended: float | None = None
    container: str | None = None
    gpus: str | None = None
    detail: str | None = None

    @property
    def over(self) -> bool:
        """Whether nothing of it runs any more."""
        return self.state in ("ended", "lost")

    def to_json(self) -> dict[str, Any]:
        """Return the stable form that `--json` prints."""
        return dict(vars(self))


class JobBackend(Protocol):
    """Who runs a job and keeps its output: a container engine, or a process and its files."""

    def follow(self, name: str, stdout: int, stderr: int) -> str:
        """Return the script that prints the output as it comes, until the job or stdin ends.

        Args:
            name: the job's.
            stdout: bytes of it that are known already.
            stderr: likewise.
        """
        ...

    def rest(self, name: str, stdout: int, stderr: int) -> str:
        """Return the script that prints the output beyond what is known."""
        ...

    def log(self, name: str, lines: int, *, follow: bool) -> str:
        """Return the script that prints the last lines, and what comes, if wanted."""
        ...

    def signal(self, name: str, signal: str) -> str:
        """Return the script that sends a signal, such as `INT`, to the job and what it began."""
        ...

    def stop(self, name: str, *, force: bool) -> str:
        """Return the script that ends it: asked for ten seconds, then killed; by force at once."""
        ...

    def remove(self, name: str) -> str:
        """Return the script that deletes a job that is over, with its output."""
        ...
