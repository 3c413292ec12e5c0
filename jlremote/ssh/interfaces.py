"""What the link and this room hand each other: output, input, terminals."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, Protocol

Stream = Literal["stdout", "stderr"]
Output = Callable[[Stream, bytes], object]


class Stdin(Protocol):
    """Input that follows a script on its stdin, and arrives piece by piece."""

    def take(self) -> bytes | None:
        """Return the next piece, empty at the end, `None` if it has not arrived yet."""

    def on_ready(self, wake: Callable[[], None]) -> None:
        """Call `wake` whenever there may be another piece."""


@dataclass
class Terminal:
    """The terminal of a script: `$TERM` there, and its size, which follows the person's."""

    kind: str
    size: os.terminal_size


class SudoPassword(Protocol):
    """The source of the password for `sudo` on the host."""

    def password_for(self, script: bytes) -> str | None: ...  # `None` if it needs none
    def refused(self) -> None: ...  # `sudo` seems to have refused it
