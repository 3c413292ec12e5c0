"""The password of `sudo` for a script: put in front of it, or typed on its terminal."""

from __future__ import annotations

from collections.abc import Callable

from jlremote.host import sudo
from jlremote.host.framing import new_marker
from jlremote.ssh.contract import Output, Stdin, Stream, SudoPassword
from jlremote.ssh.sessions.typed_text import TypedText

_WRONG = b"incorrect password attempt"


def with_password(script: bytes, source: SudoPassword | None) -> bytes:
    """Return a script for `sh -s`, with the password if it needs one."""
    password = source.password_for(script) if source else None
    return script if password is None else _rewritten(script, sudo.given, password)


def _rewritten(script: bytes, rewrite: Callable[[str, str], str], secret: str) -> bytes:
    text = script.decode("utf-8", "surrogateescape")
    return rewrite(text, secret).encode("utf-8", "surrogateescape")


class SudoScript:
    """A script that gets the password of `sudo`, if it needs one; on a terminal by its `stdin`."""

    def __init__(
        self,
        script: bytes,
        stdin: Stdin | None,
        output: Output,
        source: SudoPassword | None,
        *,
        in_terminal: bool,
    ) -> None:
        self.script, self.stdin, self.output = script, stdin, output
        password = source.password_for(script) if source else None
        if source is None or password is None:
            return

        def watched(stream: Stream, data: bytes) -> None:
            if _WRONG in data:
                source.refused()
            output(stream, data)

        self.output = watched
        if not in_terminal:
            self.script = _rewritten(script, sudo.given, password)
            return
        marker = new_marker()
        typing = TypedText(sudo.typed(password), marker, stdin, watched)
        self.script = _rewritten(script, sudo.asking, marker)
        self.stdin, self.output = typing, typing.output
