"""A process on the host whose bytes go both ways, as they are."""

from __future__ import annotations

import base64
import os
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from jlremote.host.framing import ended_early
from jlremote.host.output import FromMarker
from jlremote.link.wire.protocol import bytes_of

Message = dict[str, Any]


@dataclass(frozen=True)
class TerminalKind:
    """The terminal that a process is to run in.

    Attributes:
        kind: what `$TERM` is there.
        size: columns and rows at first.
    """

    kind: str
    size: os.terminal_size


class RemoteProcess:
    """A process that runs over the link; one thread reads it, and others may write meanwhile.

    Args:
        messages: the link's, up to the result.
        marker: what it prints before anything else, `None` in a terminal.
        say: sends a message to the link.

    Attributes:
        status: the exit status, once the iteration has ended.
    """

    def __init__(
        self, messages: Iterator[Message], marker: str | None, say: Callable[[Message], None]
    ) -> None:
        self.status: int | None = None
        self._messages = messages
        self._streams = {name: FromMarker(marker or "") for name in ("stdout", "stderr")}
        self._in_terminal = marker is None
        self._say = say
        self._saying = threading.Lock()
        # How many pieces may be sent: one, once whatever runs there is what reads stdin.
        self._credit = threading.Semaphore(1 if self._in_terminal else 0)
        self._left = threading.Event()

    def wait_connected(self) -> None:
        """Return once nothing will be asked any more, and the script is about to begin.

        Raises:
            JlrError: it cannot.
        """
        for message in self._messages:
            if "connected" in message:
                return

    def __iter__(self) -> Iterator[tuple[str, bytes]]:
        """Give what comes as it comes, each time `stdout` or `stderr` and the bytes.

        Raises:
            LinkLost: the connection broke, or we hung up.
            JlrError: the shell ended before the script began.
        """
        for message in self._messages:
            if "stream" in message:
                data = self._printed(message["stream"], bytes_of(message["data"]))
                if data:
                    yield message["stream"], data
            elif "taken" in message:
                self._credit.release()
            elif "result" in message:
                self._check_begun()
                self.status = message["result"]

    def _printed(self, name: str, data: bytes) -> bytes:
        if self._in_terminal:
            return data
        begun = self._streams["stdout"].begun
        data = self._streams[name].take(data)
        if self._streams["stdout"].begun and not begun:
            self._credit.release()
        return data

    def _check_begun(self) -> None:
        if not self._in_terminal and not self._streams["stdout"].begun:
            raise ended_early(*(stream.noise for stream in self._streams.values()))

    def give(self, data: bytes) -> bool:
        """Give a piece for stdin, nothing at its end; wait until the one before was taken.

        Returns:
            Whether somebody may still read it.
        """
        self._credit.acquire()
        if not self._left.is_set():
            self._tell({"given": base64.b64encode(data).decode("ascii")})
        return not self._left.is_set()

    def resize(self, size: os.terminal_size) -> None:
        """Tell that the terminal has another size now."""
        self._tell({"size": size})

    def hang_up(self) -> None:
        """End it, whatever the network does; the iteration ends with `LinkLost`."""
        self._tell({"hang_up": True})

    def leave(self) -> None:
        """Let go of whoever waits to give something."""
        self._left.set()
        self._credit.release()

    def _tell(self, message: Message) -> None:
        with self._saying:
            self._say(message)
