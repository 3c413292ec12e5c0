"""How a command and the link prove to each other that they have read the same secret.

Each direction has a key of its own. With one key for both, a process in the link's place could pass
the challenge of one command on to another, and return the answer as the link's.

The link uses the challenges of `multiprocessing.connection`. A command speaks them itself: to load
that module would take a tenth of a short command's time.
"""

from __future__ import annotations

import hmac
import os
from typing import TYPE_CHECKING, Any

from jlremote.link.wire.protocol import read_frame, write_frame

if TYPE_CHECKING:
    from multiprocessing.connection import Connection

    from jlremote.link.wire.protocol import Socket

_CHALLENGE, _WELCOME, _FAILURE = b"#CHALLENGE#", b"#WELCOME#", b"#FAILURE#"
# Before Python 3.12 challenges named no digest, and answers were HMAC-MD5.
_SHA256 = b"{sha256}"
_RANDOM_BYTES = 40
_LONGEST = 256


class NotProved(Exception):
    """The other side does not know the secret."""


def authenticate_command(socket: Connection[Any, Any], secret: bytes) -> None:
    """Let the command prove that it knows the secret, then prove that the link does.

    Raises:
        NotProved: the command does not know it.
        OSError, EOFError: the command is gone.
    """
    import multiprocessing.connection as sockets
    from multiprocessing import AuthenticationError

    try:
        sockets.deliver_challenge(socket, _key(secret, b"command"))
        sockets.answer_challenge(socket, _key(secret, b"link"))
    except AuthenticationError as refused:
        raise NotProved(str(refused)) from refused


def authenticate_link(socket: Socket, secret: bytes) -> None:
    """Prove that the command knows the secret, then let the link prove that it does.

    Raises:
        NotProved: the link does not know it.
        OSError, EOFError: the link is gone.
    """
    challenge = read_frame(socket, _LONGEST)
    if not challenge.startswith(_CHALLENGE):
        raise NotProved("the link asked for no proof")
    text = challenge[len(_CHALLENGE) :]
    digest = _SHA256 if text.startswith(_SHA256) else b""
    write_frame(socket, digest + _proof(_key(secret, b"command"), text, digest))
    if read_frame(socket, _LONGEST) != _WELCOME:
        raise NotProved("the link refused the proof")

    text = digest + os.urandom(_RANDOM_BYTES)
    write_frame(socket, _CHALLENGE + text)
    wanted = digest + _proof(_key(secret, b"link"), text, digest)
    is_proved = hmac.compare_digest(read_frame(socket, _LONGEST), wanted)
    write_frame(socket, _WELCOME if is_proved else _FAILURE)
    if not is_proved:
        raise NotProved("the link gave a wrong proof")


def pipe_name(secret: bytes) -> str:
    """Return the name of a link's Windows pipe.

    All users share the folder of pipes: a name that can be guessed could be taken before the link.
    """
    return rf"\\.\pipe\jlr-{_key(secret, b'pipe').hex()}"


def _key(secret: bytes, use: bytes) -> bytes:
    return hmac.digest(secret, use, "sha256")


def _proof(key: bytes, text: bytes | bytearray, digest: bytes) -> bytes:
    return hmac.digest(key, text, "sha256" if digest else "md5")
