"""A script that the link runs for a command, with its output, stdin and terminal."""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Mapping
from functools import partial
from typing import Any

from jlremote.errors import JlrError, LinkLost
from jlremote.link.service.conversation import Conversation
from jlremote.link.wire.protocol import DATA, PIECES, Message, bytes_of
from jlremote.ssh.channels.session_channel import Piece, StdinPieces
from jlremote.ssh.interfaces import Connection, Stream, Terminal

# Each message about pieces that were taken wakes the command.
_TOLD_AT_ONCE = PIECES // 2


class CommandStdin(StdinPieces):
    """Pieces of stdin from a command, which sends as many more when some were taken.

    So at most `PIECES` wait here, however fast the command and however slow the host is.
    """

    def __init__(self, conversation: Conversation) -> None:
        super().__init__(self._tell)
        self.open()  # the command itself waits until the script has begun
        self._conversation = conversation
        self._untold = 0

    def arrived(self, message: Message) -> None:
        """Receive the command's next message.

        Raises:
            ValueError: it is not a piece.
        """
        if "given" not in message or not isinstance(message.get(DATA), bytes):
            raise ValueError(f"not a piece of stdin: {message.keys()}")
        self.add(message[DATA])

    def _tell(self, pieces: int) -> None:
        """Let the command send as many pieces as were taken."""
        self._untold += pieces
        if self._untold >= _TOLD_AT_ONCE:
            taken, self._untold = self._untold, 0
            with contextlib.suppress(OSError):  # a command that is gone ends the script elsewhere
                self._conversation.say({"taken": taken})


def run(
    conversation: Conversation,
    connection: Connection,
    script: str,
    variables: Mapping[str, str],
    *,
    shown: str | None = None,
) -> int:
    """Run a script, pass its output on as it comes, and return its exit status.

    `shown` is what the person may see of it, where the command did not make it.

    Raises:
        LinkLost: the connection broke, or the command has gone.
        JlrError: it did not end within the command's limit.
    """
    request = conversation.request
    cancelled = threading.Event()
    given = CommandStdin(conversation) if request.get("gives") else None
    terminal = _terminal(request)

    def told(message: Message) -> None:
        if "end" in message:
            cancelled.set()
            if given is not None:
                given.wake()  # Ctrl-C on a followed log must not wait for its next line
        elif given is None:
            raise ValueError(f"the script takes no stdin, and got {message.keys()}")
        elif terminal is not None and "size" in message:
            terminal.size = _size(message["size"])
            given.wake()
        else:
            given.arrived(message)

    conversation.when_gone(cancelled.set, told)
    _say(conversation, {"connected": True, **({} if shown is None else {"script": shown})})

    try:
        return connection.execute(
            bytes_of(script),
            partial(_pass_on, conversation),
            timeout=request.get("timeout"),
            cancelled=cancelled,
            stdin=given,
            hold_stdin=bool(request.get("hold_stdin")),
            terminal=terminal,
            variables=variables,
        )
    except TimeoutError as late:
        raise JlrError(
            f"the host did not finish within {request.get('timeout'):g} s",
            hint="`ssh HOST uptime` shows whether it is overloaded",
        ) from late


def _pass_on(conversation: Conversation, stream: Stream, data: Piece) -> None:
    # Raises, because a flood of output leaves no time to look at `cancelled`.
    _say(conversation, {"stream": stream, DATA: data})


def _say(conversation: Conversation, message: Message) -> None:
    try:
        conversation.say(message)
    except OSError as gone:
        raise LinkLost("the command has ended") from gone


def _terminal(request: Message) -> Terminal | None:
    asked = request.get("terminal")
    return Terminal(str(asked["kind"]), _size(asked["size"])) if asked else None


def _size(value: Any) -> os.terminal_size:
    columns, rows = map(int, value)
    return os.terminal_size((columns, rows))
