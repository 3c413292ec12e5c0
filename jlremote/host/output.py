"""The output of scripts as it comes: collected up to a limit, or decoded from a marker on."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from jlremote.errors import JlrError
from jlremote.host.contract import Completed, Steps
from jlremote.host.framing import framed, new_marker, unframed

NOISE_BYTES = 4096

Execute = Callable[[str, Callable[[str, bytes], None]], object]


class OutputTooLong(JlrError):
    """A script printed more than its limit."""


@dataclass
class _Output:
    """The output so far, up to a limit for both streams together."""

    limit: int
    parts: dict[str, bytearray] = field(
        default_factory=lambda: {"stdout": bytearray(), "stderr": bytearray()}
    )

    def take(self, stream: str, data: bytes) -> None:
        self.parts[stream] += data
        if sum(map(len, self.parts.values())) > self.limit:
            raise OutputTooLong(f"the host sent more than {self.limit >> 20} MiB in answer")

    def text(self, stream: str) -> str:
        return self.parts[stream].decode("utf-8", "surrogateescape")


class FromMarker:
    """One stream of an announced script, from the marker on.

    Attributes:
        begun: whether the marker has come.
    """

    def __init__(self, marker: str) -> None:
        self.begun = False
        self._marker = f"{marker}\n".encode()
        self._before = b""

    @property
    def noise(self) -> str:
        """The last output before the marker."""
        return self._before.decode("utf-8", "replace")

    def take(self, data: bytes) -> bytes:
        """Return the part of `data`, and of bytes held back, that comes after the marker."""
        if not self.begun:
            before, marker, data = (self._before + data).partition(self._marker)
            self.begun = bool(marker)
            self._before = before[-NOISE_BYTES:]
        return data


def run_steps(steps: Steps, limit: int, execute: Execute) -> dict[str, Completed]:
    """Run `steps` through `execute(script, output)` and return how each ended.

    Raises:
        OutputTooLong: more than `limit` bytes came back.
        JlrError: the shell ended early.
    """
    marker = new_marker()
    output = _Output(limit)
    execute(framed(steps, marker), output.take)
    return unframed(steps, output.text("stdout"), output.text("stderr"), marker)
