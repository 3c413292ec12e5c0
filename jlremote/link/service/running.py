"""A script that the link runs for a command, which gets what it prints and gives what it reads."""

from __future__ import annotations

import os
import threading
from functools import partial
from typing import Any

from jlremote.errors import JlrError, LinkLost
from jlremote.link.service.conversation import Conversation, Message
from jlremote.link.service.given import GivenByCommand
from jlremote.link.wire.protocol import bytes_of, text_of
from jlremote.ssh.contract import Connection, Stream


class CommandsTerminal:
    """The terminal that a command runs in, whose size changes.

    Attributes:
        kind: what `$TERM` is there.
        size: columns and rows.
    """

    def __init__(self, request: Message) -> None:
        self.kind = str(request["kind"])
        self.size = _size(request["size"])

    def resized(self, message: Message) -> None:
        """Take the size that the command tells.

        Raises:
            ValueError: it is none.
        """
        self.size = _size(message["size"])


def run(conversation: Conversation, connection: Connection) -> int:
    """Run a script and pass its output on as it comes; the result is its exit status.

    Raises:
        LinkLost: the connection broke, or the command has gone.
        JlrError: it did not end within the command's limit.
    """
    request = conversation.request
    cancelled = threading.Event()
    given = GivenByCommand(conversation) if request.get("gives") else None
    terminal = CommandsTerminal(request["terminal"]) if request.get("terminal") else None

    def told(message: Message) -> None:
        if "end" in message:
            cancelled.set()
            if given is not None:
                given.wake()  # a person waits for a log to end that is followed
        elif given is None:
            raise ValueError(f"the script is given nothing, and {message.keys()} was said")
        elif terminal is not None and "size" in message:
            terminal.resized(message)
            given.wake()
        else:
            given.arrived(message)

    conversation.when_gone(cancelled.set, told)
    conversation.say({"connected": True})

    try:
        return connection.execute(
            bytes_of(request["script"]),
            partial(_pass_on, conversation),
            timeout=request.get("timeout"),
            cancelled=cancelled,
            stdin=given,
            hold_stdin=bool(request.get("hold_stdin")),
            terminal=terminal,
        )
    except TimeoutError as late:
        raise JlrError(
            f"the host did not finish within {request.get('timeout'):g} s",
            hint="it may be under load; look there with `ssh`",
        ) from late


def _pass_on(conversation: Conversation, stream: Stream, data: bytes) -> None:
    try:
        conversation.say({"stream": stream, "data": text_of(data)})
    except OSError as gone:
        # Raised, for as long as output floods nobody looks whether it was cancelled.
        raise LinkLost("the command that ran it has gone") from gone


def _size(value: Any) -> os.terminal_size:
    columns, rows = map(int, value)
    return os.terminal_size((columns, rows))
