"""The output of a script that runs over the link, and the input that it is given."""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from jlremote.host.framing import ended_early
from jlremote.host.output import FromMarker
from jlremote.link.wire.protocol import bytes_of

Message = dict[str, Any]


class RemoteOutput:
    """The output of a script that runs over the link.

    Args:
        messages: the link's, up to the result.
        marker: the first line that the script prints.
        given: pieces of the script's stdin.
        say: sends a message to the link.
    """

    def __init__(
        self,
        messages: Iterator[Message],
        marker: str,
        given: Iterable[bytes],
        say: Callable[[Message], None],
    ) -> None:
        self._messages = messages
        self._streams = {name: FromMarker(marker) for name in ("stdout", "stderr")}
        self._given = iter(given)
        self._say = say
        self.status: int | None = None

    def __iter__(self) -> Iterator[str]:
        """Yield stdout and stderr as they come.

        Raises:
            JlrError: the shell ended before the script began.
        """
        for message in self._messages:
            if "stream" in message:
                if text := self._printed(message):
                    yield text
            elif "taken" in message:
                self._give()
            elif "result" not in message:
                continue
            elif not self._streams["stdout"].begun:
                raise ended_early(*(stream.noise for stream in self._streams.values()))
            else:
                self.status = message["result"]

    def _printed(self, message: Message) -> str:
        begun = self._streams["stdout"].begun
        text = self._streams[message["stream"]].text(bytes_of(message["data"]))
        if self._streams["stdout"].begun and not begun:
            self._give()  # by now the shell has read its whole script, and nothing beyond
        return text

    def _give(self) -> None:
        piece = next(self._given, b"")
        self._say({"given": base64.b64encode(piece).decode("ascii")})
