"""A process on the host with its stdin and output, as bytes or as text."""

from __future__ import annotations

import codecs
import os
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from jlremote.link.wire.protocol import DATA, PIECES, Message
from jlremote.place.host.framing import FromMarker, ended_early


@dataclass(frozen=True)
class TerminalKind:
    """The terminal to run a process in: `$TERM` there, columns and rows at the start."""

    kind: str
    size: os.terminal_size


@dataclass(eq=False)
class RemoteProcess:
    """A process that runs over the link; one thread reads it, others may write meanwhile.

    Its output begins after the line `marker`, `None` in a terminal. `on_ready` is called when the
    next piece of stdin may be sent; without it `give` waits for that. The exit `status`
    is known once the iteration has ended.
    """

    messages: Iterator[Message]
    marker: str | None
    say: Callable[[Message], None]
    on_ready: Callable[[], None] | None = None
    status: int | None = field(default=None, init=False)
    _left: threading.Event = field(default_factory=threading.Event, init=False)

    def __post_init__(self) -> None:
        self._streams = {name: FromMarker(self.marker or "") for name in ("stdout", "stderr")}
        # How many pieces may be sent: none until the program and not its shell reads stdin.
        self._credit = threading.Semaphore(PIECES if self.marker is None else 0)

    def __iter__(self) -> Iterator[tuple[str, bytes]]:
        """Yield the output as it comes: `stdout` or `stderr`, and the bytes.

        Raise `LinkLost` if the connection broke or this side hung up, and `JlrError` if the shell
        ended before the script began.
        """
        for message in self.messages:
            if "stream" in message:
                data = self._printed(message["stream"], message[DATA])
                if data:
                    yield message["stream"], data
            elif "taken" in message:
                self._may_send(message["taken"])
            elif "result" in message:
                if self.marker is not None and not self._streams["stdout"].begun:
                    raise ended_early(*(stream.noise for stream in self._streams.values()))
                self.status = message["result"]

    def text(self) -> Iterator[str]:
        """Yield stdout and stderr as text, as they come (see `__iter__`)."""
        new_decoder = codecs.getincrementaldecoder("utf-8")
        decoders = {name: new_decoder("replace") for name in self._streams}
        for stream, data in self:
            if text := decoders[stream].decode(data):
                yield text

    def _printed(self, name: str, data: bytes) -> bytes:
        if self.marker is None:
            return data
        begun = self._streams["stdout"].begun
        data = self._streams[name].take(data)
        if self._streams["stdout"].begun and not begun:
            # By now the shell has read its whole script, and nothing beyond.
            self._may_send(PIECES)
        return data

    def _may_send(self, pieces: int) -> None:
        for _ in range(pieces):
            (self.on_ready or self._credit.release)()

    def give(self, data: bytes) -> bool:
        """Send a piece of stdin (empty at its end) once most pieces before it were read.

        Return whether the process may still read it.
        """
        self._credit.acquire()
        if not self._left.is_set():
            self.send(data)
        return not self._left.is_set()

    def send(self, data: bytes) -> None:
        """Send a piece of stdin at once, empty at its end."""
        self.say({"given": True, DATA: data})

    def resize(self, size: os.terminal_size) -> None:
        """Report a new size of the terminal."""
        self.say({"size": size})

    def hang_up(self) -> None:
        """End the process, even without a network; the iteration then raises `LinkLost`."""
        self.say({"hang_up": True})

    def leave(self) -> None:
        """Release the threads that wait in `give`."""
        self._left.set()
        self._credit.release()
