"""Run framed steps over anything that can execute a script and pass its output on."""

from __future__ import annotations

import codecs
from collections.abc import Callable
from dataclasses import dataclass, field

from jlremote.errors import JlrError
from jlremote.host.script import Completed, Steps, framed, new_marker, unframed

NOISE_BYTES = 4096

Execute = Callable[[str, Callable[[str, bytes], None]], object]


@dataclass
class _Output:
    """What came back so far, up to a limit for both streams together."""

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


class BytesFromMarker:
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
        """What came last without a marker."""
        return self._before.decode("utf-8", "replace")

    def take(self, data: bytes) -> bytes:
        """Return what of it, and of what was held back, comes after the marker."""
        if not self.begun:
            before, marker, data = (self._before + data).partition(self._marker)
            self.begun = bool(marker)
            self._before = before[-NOISE_BYTES:]
        return data


class FromMarker:
    """Decodes one stream of an announced script, from the marker on."""

    def __init__(self, marker: str) -> None:
        self._bytes = BytesFromMarker(marker)
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")

    @property
    def begun(self) -> bool:
        """Whether the marker has come."""
        return self._bytes.begun

    @property
    def noise(self) -> str:
        """What came last without a marker."""
        return self._bytes.noise

    def take(self, data: bytes) -> str:
        """Return the text that is whole by now."""
        return self._decoder.decode(self._bytes.take(data))


class OutputTooLong(JlrError):
    """A script printed more than it may."""


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
