"""A script that the link runs for a command, with its output, stdin and terminal."""

from __future__ import annotations

import contextlib
import os
import threading
from collections import deque
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from jlremote.errors import JlrError, LinkLost
from jlremote.link.passed_streams import PassedStreams
from jlremote.link.service.conversation import Conversation
from jlremote.link.wire.protocol import DATA, PIECES, WRITES_NOW, Message, bytes_of
from jlremote.ssh.contract import Connection, Stream

# Bytes of stdin that are sent at once.
_AT_ONCE = 256 << 10
# Each message about pieces that were taken wakes the command.
_TOLD_AT_ONCE = PIECES // 2


class CommandTerminal:
    """The terminal of a script: `$TERM` there, and its size, which follows the command's."""

    def __init__(self, request: Message) -> None:
        self.kind = str(request["kind"])
        self.size = _size(request["size"])

    def resized(self, message: Message) -> None:
        """Take the size from a command's message.

        Raises:
            ValueError: it is not a size.
        """
        self.size = _size(message["size"])


class CommandStdin:
    """Pieces of stdin from a command, which sends as many more when some were taken.

    So at most `PIECES` wait here, however fast the command and however slow the host is. `wake`
    wakes the thread that runs the script.
    """

    def __init__(self, conversation: Conversation) -> None:
        self._conversation = conversation
        self._pieces: deque[memoryview] = deque()
        self._untold = 0
        self.wake: Callable[[], None] = lambda: None

    def arrived(self, message: Message) -> None:
        """Receive the command's next message.

        Raises:
            ValueError: it is not a piece.
        """
        if "given" not in message or not isinstance(message.get(DATA), memoryview):
            raise ValueError(f"not a piece of stdin: {message.keys()}")
        self._pieces.append(message[DATA])
        self.wake()

    def on_ready(self, wake: Callable[[], None]) -> None:
        """Call `wake` whenever a piece has come."""
        self.wake = wake

    def take(self) -> bytes | memoryview | None:
        """Return the pieces that have come, and let the command send as many."""
        pieces, size = list[memoryview](), 0
        while size < _AT_ONCE and self._pieces and (self._pieces[0] or not pieces):
            pieces.append(self._pieces.popleft())
            size += len(pieces[-1]) or _AT_ONCE  # an empty piece is the end, and goes by itself
        if not pieces:
            return None
        self._untold += len(pieces)
        if pieces[-1] and self._untold >= _TOLD_AT_ONCE:
            taken, self._untold = self._untold, 0
            with contextlib.suppress(OSError):  # a command that is gone ends the script elsewhere
                self._conversation.say({"taken": taken})
        return pieces[0] if len(pieces) == 1 else b"".join(pieces)


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
    terminal = CommandTerminal(request["terminal"]) if request.get("terminal") else None

    def told(message: Message) -> None:
        if "end" in message:
            cancelled.set()
            if given is not None:
                given.wake()  # Ctrl-C on a followed log must not wait for its next line
        elif given is None:
            raise ValueError(f"the script takes no stdin, and got {message.keys()}")
        elif terminal is not None and "size" in message:
            terminal.resized(message)
            given.wake()
        else:
            given.arrived(message)

    conversation.when_gone(cancelled.set, told)
    write_now = None
    if given is not None and WRITES_NOW:  # its end wakes the script's thread
        conversation.open_output()
        write_now = conversation.output_now
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
            write_now=write_now,
            variables=variables,
        )
    except TimeoutError as late:
        raise JlrError(
            f"the host did not finish within {request.get('timeout'):g} s",
            hint="`ssh HOST uptime` shows whether it is overloaded",
        ) from late


def run_passed(
    conversation: Conversation,
    connection: Connection,
    script: str,
    variables: Mapping[str, str],
    passed: PassedStreams,
    *,
    shown: str,
) -> int:
    """Run a script with the command's own streams, as `run`; they are read and written here.

    Raises:
        LinkLost: the connection broke, or the command has gone.
        ReaderLeft: what reads its stdout has.
        JlrError: the script did not begin, or its output cannot be written.
    """
    cancelled = threading.Event()

    def end(_: Message | None = None) -> None:
        cancelled.set()
        passed.stop()

    conversation.when_gone(end, end)
    _say(conversation, {"connected": True, "script": shown})
    status = connection.execute(
        bytes_of(script),
        passed.output,
        cancelled=cancelled,
        stdin=passed,
        write_now=passed.write_now,
        variables=variables,
    )
    passed.check_begun()
    return status


def _pass_on(conversation: Conversation, stream: Stream, data: bytes) -> None:
    # Raises, because a flood of output leaves no time to look at `cancelled`.
    if stream == "rest":
        _said(conversation.say_rest)
    else:
        _say(conversation, {"stream": stream, DATA: data})


def _say(conversation: Conversation, message: Message) -> None:
    _said(partial(conversation.say, message))


def _said(say: Callable[[], None]) -> None:
    try:
        say()
    except OSError as gone:
        raise LinkLost("the command has ended") from gone


def _size(value: Any) -> os.terminal_size:
    columns, rows = map(int, value)
    return os.terminal_size((columns, rows))
