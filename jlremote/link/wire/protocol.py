"""The messages between a command and the link: JSON, never pickles.

A line feed, which JSON alone never has, ends the text of a message that carries bytes.
One connection is one conversation. The command sends one request; the link answers with any
number of messages and closes. The messages, told apart by their only or first key::

    → {"op": …, "version": …, "agent": …, …}   the request
    ← {"accepted": true}         work begins; before this a request may be sent again
    ← {"ask": KIND, "text": …, "echo": …}   → {"answer": …} or {"declined": ERROR}
    ← {"connected": true}        a script may begin, no more questions; with the `script` if
                                 the link made it
    → {"begin": true}            begin it; until then a command that ends leaves nothing to end
    ← {"stream": "stdout" | "stderr"}, and the bytes
    → {"given": true}, and the bytes: a piece of a script's stdin, empty at its end
    ← {"taken": COUNT}           as many further pieces may come; `PIECES` may be under way
    → {"size": [COLUMNS, ROWS]}  the new size of the script's terminal
    → {"end": true}              end the script; the command waits for the result or error
    → {"hang_up": true}          as if the command had gone, but it still reads the answer
    ← {"result": …}  or  {"error": NAME, "message": …, "hint": …}
"""

from __future__ import annotations

import hmac
import json
import os
import select
import socket as plain_sockets
import struct
import sys
from typing import TYPE_CHECKING, Any

from jlremote.errors import JlrError

if TYPE_CHECKING:
    from multiprocessing.connection import Connection

    # A connection of the link, and a socket of the command, but on Windows.
    Socket = Connection[Any, Any] | plain_sockets.socket

Message = dict[str, Any]
MESSAGE_BYTES = 16 << 20
# The key of a message's bytes.
DATA = "data"
# With one piece under way each would wait for two processes to wake up.
PIECES = 8

# What a new link says on its stdout once it listens; else an error as JSON.
READY = b"ready\n"


class OtherVersion(JlrError):
    """The link was started by another version of jlr than the command's."""


class Unproved(JlrError):
    """The link does not know whether a session runs; the command has to ask the host."""


def send(connection: Socket, message: Message) -> None:
    """Send one message, with its bytes at `DATA`; raise `OSError` if the other side is gone."""
    data = message.get(DATA)
    if not isinstance(data, bytes):
        write_frame(connection, json.dumps(message).encode("ascii"))
        return
    head = {key: value for key, value in message.items() if key != DATA}
    write_frame(connection, json.dumps(head).encode("ascii") + b"\n", data)


def receive(connection: Socket) -> Message:
    """Return the next message.

    Raise `EOFError` if the other side closed, `OSError` if it is gone or sent more than a message
    may hold, `ValueError` if what came is not a message.
    """
    return _message(read_frame(connection, MESSAGE_BYTES))


def _message(frame: bytes | bytearray) -> Message:
    end = frame.find(b"\n")
    try:
        message = json.loads(frame if end < 0 else frame[:end])
    except RecursionError as error:
        raise ValueError("a message is nested too deep") from error
    if not isinstance(message, dict):
        raise ValueError("a message is a JSON object")
    if end >= 0:
        message[DATA] = bytes(memoryview(frame)[end + 1 :])
    return message


def is_there(connection: Socket, seconds: float) -> bool:
    """Wait until a message, or the end, has come; return whether it has within `seconds`."""
    if sys.platform == "win32":
        assert not isinstance(connection, plain_sockets.socket)
        return connection.poll(seconds)
    poll = select.poll()
    poll.register(connection.fileno(), select.POLLIN)
    return bool(poll.poll(seconds * 1000))


# The frames of `multiprocessing.connection`, which makes several system calls and copies of each.
_SIZE = struct.Struct("!i")


def write_frame(connection: Socket, *parts: bytes) -> None:
    """Write one frame, in parts; raise `OSError` if the other side is gone."""
    if sys.platform == "win32":
        assert not isinstance(connection, plain_sockets.socket)
        connection.send_bytes(b"".join(parts))
        return
    rest = [memoryview(part) for part in (_SIZE.pack(sum(map(len, parts))), *parts)]
    while rest:
        written = os.writev(connection.fileno(), rest)
        while rest and written >= len(rest[0]):
            written -= len(rest.pop(0))
        if rest:
            rest[0] = rest[0][written:]


def read_frame(connection: Socket, most: int) -> bytes | bytearray:
    """Return the next frame, of `most` bytes at most.

    Raise `EOFError` if the other side closed, `OSError` if it is gone or sent more than that.
    """
    if sys.platform == "win32":
        assert not isinstance(connection, plain_sockets.socket)
        return connection.recv_bytes(most)
    (size,) = _SIZE.unpack(_exactly(connection, _SIZE.size))
    if not 0 <= size <= most:
        raise OSError(f"a message of {size} bytes")
    return _exactly(connection, size)


def _exactly(connection: Socket, size: int) -> bytearray:
    if sys.platform == "win32":
        raise NotImplementedError
    data = bytearray(size)
    rest = memoryview(data)
    while rest:
        count = os.readv(connection.fileno(), [rest])
        if not count:
            raise EOFError
        rest = rest[count:]
    return data


def plain_socket(connection: Socket) -> plain_sockets.socket:
    """Return a socket for what follows the last message, in another protocol.

    A pipe of Windows carries no such bytes: two threads bring them to it, and back, a frame each.
    """
    if sys.platform != "win32":
        return plain_sockets.socket(fileno=os.dup(connection.fileno()))
    import multiprocessing.connection as sockets
    import multiprocessing.reduction as handles

    from jlremote.laptop.windows import socket_of

    # The other one is closed soon; an empty frame stands for the end of one direction.
    pipe = sockets.PipeConnection(handles.duplicate(connection.fileno()))
    return socket_of(pipe.recv_bytes, pipe.send_bytes, lambda: pipe.send_bytes(b""))


def text_of(data: bytes) -> str:
    """Return bytes as a string that JSON can carry, whatever their encoding."""
    return data.decode("utf-8", "surrogateescape")


def bytes_of(text: str) -> bytes:
    """Return the bytes of a string made by `text_of`."""
    return text.encode("utf-8", "surrogateescape")


# How a command and the link prove to each other that they have read the same secret: each sends
# random bytes and gets a digest of both sides' bytes under the secret. Each direction has a key of
# its own: with one for both, a process in the link's place could pass what it got from one command
# on to another, and return that answer as the link's.
_RANDOM_BYTES = 32
_LONGEST_PROOF = 256


class NotProved(Exception):
    """The other side does not know the secret."""


def authenticate_command(socket: Socket, secret: bytes) -> None:
    """Let the command prove that it knows the secret, then prove that the link does.

    Raise `NotProved` if the command does not know it, `OSError` or `EOFError` if it is gone.
    """
    ours = os.urandom(_RANDOM_BYTES)
    write_frame(socket, ours)
    answer = read_frame(socket, _LONGEST_PROOF)
    both = ours + answer[:_RANDOM_BYTES]
    if not hmac.compare_digest(answer[_RANDOM_BYTES:], _proof(secret, b"command", both)):
        write_frame(socket, b"")
        raise NotProved("the command gave a wrong proof")
    write_frame(socket, _proof(secret, b"link", both))


def authenticate_link(socket: Socket, secret: bytes) -> None:
    """Prove that the command knows the secret, then let the link prove that it does.

    Raise `NotProved` if the link does not know it, `OSError` or `EOFError` if it is gone.
    """
    theirs, ours = read_frame(socket, _LONGEST_PROOF), os.urandom(_RANDOM_BYTES)
    if len(theirs) != _RANDOM_BYTES:
        raise NotProved("the link asked for no proof")
    both = theirs + ours
    write_frame(socket, ours + _proof(secret, b"command", both))
    if not hmac.compare_digest(read_frame(socket, _LONGEST_PROOF), _proof(secret, b"link", both)):
        raise NotProved("the link gave a wrong proof")


def _proof(secret: bytes, use: bytes, both: bytes | bytearray) -> bytes:
    return hmac.digest(hmac.digest(secret, use, "sha256"), both, "sha256")


def pipe_name(secret: bytes) -> str:
    """Return the name of a link's Windows pipe.

    All users share the folder of pipes: a name that can be guessed could be taken before the link.
    """
    return rf"\\.\pipe\jlr-{hmac.digest(secret, b'pipe', 'sha256').hex()}"
