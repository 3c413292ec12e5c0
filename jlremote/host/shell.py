"""A host as its callers see it: something that runs scripts."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager
from typing import Protocol

from jlremote.host.script import Completed, Steps

SCRIPT_SECONDS = 60.0
OUTPUT_BYTES = 8 << 20


class Host(Protocol):
    """Where scripts run."""

    @property
    def name(self) -> str:
        """What was typed after `ssh`."""
        ...

    def run(
        self, steps: Steps, *, timeout: float = SCRIPT_SECONDS, limit: int = OUTPUT_BYTES
    ) -> dict[str, Completed]:
        """Run `steps` in order in one round trip and return how each ended.

        Args:
            steps: name of a step to its text, POSIX sh.
            timeout: seconds for all of them.
            limit: bytes of output for all of them.

        Raises:
            JlrError: time or output went over the limit, or the shell ended early.
            Unreachable: the connection is not there, or broke.
        """
        ...


class OutputStream(Protocol):
    """The output of a script that still runs."""

    status: int | None
    """The exit status, once the iteration has ended."""

    def __iter__(self) -> Iterator[str]:
        """Give stdout and stderr as they come."""
        ...


class StreamingHost(Host, Protocol):
    """A host whose scripts can also be watched."""

    def stream(
        self, script: str, given: Iterable[bytes] = (), *, end: bool = False
    ) -> AbstractContextManager[OutputStream]:
        """Run `script` and give its output as it comes; leaving the context ends it.

        Args:
            script: POSIX sh.
            given: pieces of what the script's commands find on stdin. They are asked for while the
                output is iterated over, one at a time as the host takes them; what that raises is
                passed on.
            end: whether stdin ends behind that. It stays open otherwise for as long as the context,
                so that `until_hang_up` ends what runs wherever.
        """
        ...


def run_script(host: Host, script: str, *, timeout: float = SCRIPT_SECONDS) -> Completed:
    """Run a script of one step, for at most `timeout` seconds (see `Host.run`)."""
    return host.run({"script": script}, timeout=timeout)["script"]
