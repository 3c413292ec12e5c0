"""A host as its callers see it: a shell that runs scripts, and how each of their steps ended."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from jlremote.text import printable

if TYPE_CHECKING:
    from typing import TypeAlias

SCRIPT_SECONDS = 60.0
OUTPUT_BYTES = 8 << 20
# The label of what belongs to one user of the host.
USER_LABEL = "org.jlremote.user"

Steps: TypeAlias = "Mapping[str, str]"


@dataclass(frozen=True)
class Completed:
    """How a step ended: its exit status and what it printed."""

    status: int
    stdout: str
    stderr: str

    @property
    def complaint(self) -> str:
        """The last line of stderr (else of stdout), safe to show to a person."""
        said = printable(self.stderr).strip() or printable(self.stdout).strip()
        return said.splitlines()[-1].strip() if said else f"exit status {self.status}"


class Host(Protocol):
    """A machine that runs scripts."""

    @property
    def name(self) -> str:
        """The destination as it was typed after `ssh`."""

    def run(
        self, steps: Steps, *, timeout: float = SCRIPT_SECONDS, limit: int = OUTPUT_BYTES
    ) -> dict[str, Completed]:
        """Run `steps` (POSIX sh by name) in order in one round trip; return how each ended.

        The timeout in seconds and the limit in bytes of output are for all steps together.

        Raises:
            JlrError: time or output went over the limit, or the shell ended early.
            Unreachable: there is no connection, or it broke.
        """


def run_script(host: Host, script: str, *, timeout: float = SCRIPT_SECONDS) -> Completed:
    """Run a script of one step, for at most `timeout` seconds (see `Host.run`)."""
    return host.run({"script": script}, timeout=timeout)["script"]
