"""The messages between a command and the link: JSON, never pickles.

A message that carries bytes ends with a line feed, which JSON alone never does; they come next.
One connection is one conversation. The command sends one request; the link answers with any
number of messages and closes. The messages, told apart by their only or first key::

    → {"op": …, "version": …, "protocol": …, "replaces": …, "agent": …, …}   the request
    ← {"accepted": true}         work begins; before this a request may be sent again
    ← {"replace": VERSION}       the link is older than a command that `replaces` it, and ends
    ← {"ask": KIND, "text": …, "echo": …}   → {"answer": …} or {"declined": ERROR}
    ← {"connected": true}        a script begins; no more questions
    ← {"stream": "stdout" | "stderr"}, and the bytes
    → {"given": true}, and the bytes: a piece of a script's stdin, empty at its end
    ← {"taken": true}            a further piece may come; `PIECES` may be under way
    → {"size": [COLUMNS, ROWS]}  the new size of the script's terminal
    → {"end": true}              end the script; the command waits for the result or error
    → {"hang_up": true}          as if the command had gone, but it still reads the answer
    ← {"result": …}  or  {"error": NAME, "message": …, "hint": …}
"""

from __future__ import annotations

import json
from multiprocessing.connection import Connection
from typing import Any

from jlremote.errors import JlrError

Message = dict[str, Any]
PROTOCOL = 8
MESSAGE_BYTES = 16 << 20


# The key of a message's bytes.
DATA = "data"
# With one piece under way each would wait for two processes to wake up.
PIECES = 8

# What a new link says on its stdout once it listens; else it says `error_line`.
READY = b"ready\n"


class OtherVersion(JlrError):
    """The link and the command do not understand each other."""


def error_line(trouble: Exception) -> bytes:
    """Return what a new link says if it cannot listen."""
    error = trouble if isinstance(trouble, JlrError) else JlrError(f"cannot listen: {trouble}")
    return json.dumps(error.to_json()).encode("ascii") + b"\n"


def send(connection: Connection[Any, Any], message: Message) -> None:
    """Send one message, with the bytes at `DATA` if it has any.

    Raises:
        OSError: the other side is gone.
    """
    data = message.get(DATA)
    if isinstance(data, bytes):
        head = {key: value for key, value in message.items() if key != DATA}
        connection.send_bytes(json.dumps(head).encode("ascii") + b"\n")
        connection.send_bytes(data)
    else:
        connection.send_bytes(json.dumps(message).encode("ascii"))


def receive(connection: Connection[Any, Any]) -> Message:
    """Return the next message.

    Raises:
        EOFError: the other side closed.
        OSError: the other side is gone, or sent more than a message may hold.
        ValueError: what came is not a message.
    """
    head = connection.recv_bytes(MESSAGE_BYTES)
    message = json.loads(head)
    if not isinstance(message, dict):
        raise ValueError("a message is a JSON object")
    if head.endswith(b"\n"):
        message[DATA] = connection.recv_bytes(MESSAGE_BYTES)
    return message


def text_of(data: bytes) -> str:
    """Return bytes as a string that JSON can carry, whatever their encoding."""
    return data.decode("utf-8", "surrogateescape")


def bytes_of(text: str) -> bytes:
    """Return the bytes of a string made by `text_of`."""
    return text.encode("utf-8", "surrogateescape")
