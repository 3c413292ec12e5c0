"""A job, and the scripts that each kind of job must provide."""

from __future__ import annotations

import shlex
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from jlremote import times
from jlremote.errors import Usage
from jlremote.place.host.shell_text import command_line, until_hang_up


@dataclass(frozen=True)
class Job:
    """A job as it is right now."""

    name: str  # its name; also that of its container, if it has one of its own
    # `waiting` (for GPUs, or in a scheduler's queue), `running`, `ended`, `created` (not begun), or
    # `lost`: its end was not recorded; with a scheduler also `unknown` while that does not answer
    state: str
    command: str  # the command, quoted for a shell
    exit_code: int | None = None  # its exit code, `None` unless it has ended
    since: float | None = None  # when it began, in seconds since the epoch
    ended: float | None = None  # when it ended, in seconds since the epoch
    container: str | None = None  # its container, `None` for the host itself
    gpus: str | None = None  # the GPUs as they were requested
    detail: str | None = None  # why it ended, beside the exit code, or what is wrong while it runs
    id: str | None = None  # the engine's full id of a container of its own
    job: str | None = None  # the scheduler's id
    node: str | None = None  # the nodes that the scheduler gave it
    reason: str | None = None  # why it waits
    starts: float | None = None  # when the scheduler expects it to begin, likewise
    place: int | None = None  # its place in the queue for GPUs of the host, the first is 1
    until: float | None = None  # when its time limit ends it, in seconds since the epoch
    remove: bool = False  # whether it is deleted once its output and exit code were read
    terminal: bool = False  # whether it has a terminal
    interactive: bool = False  # whether it gets stdin and has no terminal
    mark: str = ""  # tells it from a later job of its name, empty if it has none

    @property
    def over(self) -> bool:
        return self.state in ("ended", "lost")

    @property
    def waits_for_gpus(self) -> bool:
        """Whether the job waits for GPUs of its host."""
        return self.state == "waiting" and self.job is None

    @property
    def waits(self) -> str | None:
        """Why the job waits, and when it is expected to begin; `None` if it does not wait."""
        if self.reason is None or self.starts is None:
            return self.reason
        return f"{self.reason}; {times.expected(self.starts)}"

    @property
    def key(self) -> str:
        """The job's id or name, for scripts: another container may get its name."""
        return self.id or self.name

    def by_our_clock(self, now: float | None) -> Job:
        """Return the job with its moments by this machine's clock; `now` is its host's time."""
        here = partial(times.by_our_clock, their_now=now)
        since, ended, until = here(self.since), here(self.ended), here(self.until)
        return replace(self, since=since, ended=ended, until=until)

    @property
    def ending(self) -> str:
        how = "" if self.exit_code is None else f" with exit code {self.exit_code}"
        if self.ended and self.since:
            how += f" after {times.in_words(max(0, int(self.ended - self.since)))}"
        detail = f" ({self.detail})" if self.detail else ""
        return f"the job has ended{how}{detail}: {self.command}"

    def to_json(self) -> dict[str, Any]:
        moments = {name: getattr(self, name) for name in ("since", "ended", "starts", "until")}
        told = {name: None if when is None else times.utc(when) for name, when in moments.items()}
        return vars(self) | told


class FolderJobs:
    """Jobs whose output is in the files `stdout` and `stderr` of a folder each.

    Methods return scripts for the job of a `key`: `follow` prints the output until the job or stdin
    ends, `rest` what is there, both without the first bytes of each file.
    """

    root: str  # shell text: the folder of their folders
    _known: str  # shell text: the functions that `_until_over` needs

    def _until_over(self) -> str:
        raise NotImplementedError

    def folder(self, key: str) -> str:
        return f"directory={self.root}/{shlex.quote(key)}\n"

    def follow(self, key: str, stdout: int, stderr: int) -> str:
        return self._watch(key, f"-c +{stdout + 1}", f"-c +{stderr + 1}")

    def rest(self, key: str, stdout: int, stderr: int) -> str:
        return self._show(key, f"-c +{stdout + 1}", f"-c +{stderr + 1}")

    def log(self, key: str, lines: int | None, *, follow: bool, since: int | None = None) -> str:
        """Return the script that prints the last lines (`None`: all), and what comes then."""
        if since is not None:
            why = f"the output of the job `{key}` has no times, as it has no container of its own"
            raise Usage(why, hint="leave out `--since`; `--tail N` shows the last lines")
        last = f"-n {'+1' if lines is None else lines}"
        return (self._watch if follow else self._show)(key, last, last)

    def remove(self, key: str) -> str:
        return f'{self.folder(key)}rm -rf -- "$directory" || exit\n'

    def _show(self, key: str, stdout: str, stderr: str) -> str:
        return (
            f'{self.folder(key)}tail {stdout} "$directory/stdout"\n'
            f'tail {stderr} "$directory/stderr" >&2\n'
        )

    def _watch(self, key: str, stdout: str, stderr: str) -> str:
        watching = (
            f'{self.folder(key)}{self._known}tail {stdout} -f "$directory/stdout" & out=$!\n'
            f'tail {stderr} -f "$directory/stderr" >&2 & err=$!\n'
            f"trap 'kill $out $err 2>/dev/null' EXIT; trap 'exit 1' TERM\n{self._until_over()}"
        )
        return until_hang_up(command_line(("sh", "-c", watching)))
