"""Text that is typed into a script's terminal before the user's input, as `sudo`'s password."""

from __future__ import annotations

from collections.abc import Callable

from jlremote.place.host import sudo
from jlremote.place.host.framing import new_marker
from jlremote.ssh.interfaces import Output, Stdin, Stream, SudoPassword

_WRONG = b"incorrect password attempt"


class TypedText:
    """Types a text when a terminal shows a marker, before the person's own input.

    `shown` gets the terminal's output without the marker.
    """

    def __init__(self, text: bytes, marker: str, stdin: Stdin | None, shown: Output) -> None:
        self._text: bytes | None = text
        self._marker = marker.encode()
        self._stdin = stdin
        self._shown = shown
        self._before = b""
        self._asked = False
        self._wake: Callable[[], None] = lambda: None

    def output(self, stream: Stream, data: bytes) -> None:
        if not self._asked:
            before, marker, data = (self._before + data).partition(self._marker)
            self._asked = bool(marker)
            # What ends like the marker's beginning may be that.
            lengths = range(0 if marker else len(self._marker) - 1, 0, -1)
            kept = next((one for one in lengths if before.endswith(self._marker[:one])), 0)
            self._before = before[len(before) - kept :]
            data = before[: len(before) - kept] + data
            if self._asked:
                self._wake()
        if data:
            self._shown(stream, data)

    def on_ready(self, wake: Callable[[], None]) -> None:
        self._wake = wake
        if self._stdin is not None:
            self._stdin.on_ready(wake)

    def take(self) -> bytes | None:
        if not self._asked:
            return None
        if self._text is not None:
            text, self._text = self._text, None
            return text
        return self._stdin.take() if self._stdin is not None else None


def _rewritten(script: bytes, rewrite: Callable[[str, str], str], secret: str) -> bytes:
    text = script.decode("utf-8", "surrogateescape")
    return rewrite(text, secret).encode("utf-8", "surrogateescape")


def answering_sudo(
    script: bytes,
    stdin: Stdin | None,
    output: Output,
    source: SudoPassword | None,
    *,
    in_terminal: bool,
) -> tuple[bytes, Stdin | None, Output]:
    """Return script, stdin and output of a script that gets the password of `sudo` if need be.

    It is in the script, but in a terminal in `stdin`.
    """
    password = source.password_for(script) if source else None
    if source is None or password is None:
        return script, stdin, output

    def watched(stream: Stream, data: bytes) -> None:
        if _WRONG in data:
            source.refused()
        output(stream, data)

    if not in_terminal:
        return _rewritten(script, sudo.given, password), stdin, watched
    marker = new_marker()
    typing = TypedText(sudo.typed(password), marker, stdin, watched)
    return _rewritten(script, sudo.asking, marker), typing, typing.output
