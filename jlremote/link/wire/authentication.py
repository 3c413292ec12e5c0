"""How a command and the link prove to each other that they have read the same secret.

Each side sends random bytes and gets a digest of both sides' bytes under the secret. Each direction
has a key of its own: with one for both, a process in the link's place could pass what it got from
one command on to another, and return that answer as the link's.
"""

from __future__ import annotations

import hmac
import os
from typing import TYPE_CHECKING

from jlremote.link.wire.protocol import read_frame, write_frame

if TYPE_CHECKING:
    from jlremote.link.wire.protocol import Socket

_RANDOM_BYTES = 32
_LONGEST = 256


class NotProved(Exception):
    """The other side does not know the secret."""


def authenticate_command(socket: Socket, secret: bytes) -> None:
    """Let the command prove that it knows the secret, then prove that the link does.

    Raises:
        NotProved: the command does not know it.
        OSError, EOFError: the command is gone.
    """
    ours = os.urandom(_RANDOM_BYTES)
    write_frame(socket, ours)
    answer = read_frame(socket, _LONGEST)
    both = ours + answer[:_RANDOM_BYTES]
    if not hmac.compare_digest(answer[_RANDOM_BYTES:], _proof(secret, b"command", both)):
        write_frame(socket, b"")
        raise NotProved("the command gave a wrong proof")
    write_frame(socket, _proof(secret, b"link", both))


def authenticate_link(socket: Socket, secret: bytes) -> None:
    """Prove that the command knows the secret, then let the link prove that it does.

    Raises:
        NotProved: the link does not know it.
        OSError, EOFError: the link is gone.
    """
    theirs, ours = read_frame(socket, _LONGEST), os.urandom(_RANDOM_BYTES)
    if len(theirs) != _RANDOM_BYTES:
        raise NotProved("the link asked for no proof")
    both = theirs + ours
    write_frame(socket, ours + _proof(secret, b"command", both))
    if not hmac.compare_digest(read_frame(socket, _LONGEST), _proof(secret, b"link", both)):
        raise NotProved("the link gave a wrong proof")


def pipe_name(secret: bytes) -> str:
    """Return the name of a link's Windows pipe.

    All users share the folder of pipes: a name that can be guessed could be taken before the link.
    """
    return rf"\\.\pipe\jlr-{_key(secret, b'pipe').hex()}"


def _key(secret: bytes, use: bytes) -> bytes:
    return hmac.digest(secret, use, "sha256")


def _proof(secret: bytes, use: bytes, both: bytes | bytearray) -> bytes:
    return hmac.digest(_key(secret, use), both, "sha256")
