"""The output of a script that runs over the link, as text, and the input that it is given."""

from __future__ import annotations

import codecs
from collections.abc import Callable, Iterable, Iterator

from jlremote.link.client.remote_process import RemoteProcess
from jlremote.link.wire.protocol import Message


class RemoteOutput:
    """The output of a script that runs over the link and gets the pieces `given` as its stdin."""

    def __init__(
        self,
        messages: Iterator[Message],
        marker: str,
        given: Iterable[bytes],
        say: Callable[[Message], None],
    ) -> None:
        self._given = iter(given)
        self._process = RemoteProcess(messages, marker, say, self._give)

    @property
    def status(self) -> int | None:
        """The exit status, once the iteration has ended."""
        return self._process.status

    def __iter__(self) -> Iterator[str]:
        """Yield stdout and stderr as they come.

        Raises:
            JlrError: the shell ended before the script began.
        """
        new_decoder = codecs.getincrementaldecoder("utf-8")
        decoders = {name: new_decoder("replace") for name in ("stdout", "stderr")}
        for stream, data in self._process:
            if text := decoders[stream].decode(data):
                yield text

    def _give(self) -> None:
        self._process.send(next(self._given, b""))
