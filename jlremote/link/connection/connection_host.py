"""The host for the link's own checks."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from jlremote.errors import JlrError
from jlremote.host.contract import OUTPUT_BYTES, SCRIPT_SECONDS, Completed, Steps
from jlremote.host.output import run_steps
from jlremote.link.wire.protocol import bytes_of
from jlremote.ssh.contract import Connection


@dataclass(frozen=True)
class ConnectionHost:
    """A `Host` on one connection, for the checks that the link makes by itself."""

    name: str
    connection: Connection

    def run(
        self, steps: Steps, *, timeout: float = SCRIPT_SECONDS, limit: int = OUTPUT_BYTES
    ) -> dict[str, Completed]:
        """Run `steps` (see `Host.run`)."""

        def execute(script: str, output: Callable[[str, bytes], None]) -> None:
            try:
                self.connection.execute(bytes_of(script), output, timeout=timeout)
            except TimeoutError as late:
                raise JlrError(f"`{self.name}` did not answer within {timeout:g} s") from late

        return run_steps(steps, limit, execute)
