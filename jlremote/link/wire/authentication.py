"""How a command and the link prove to each other that they have read the same secret.

Each direction has a key of its own. With one key for both, a process in the link's place could pass
the challenge of one command on to another, and return the answer as the link's.
"""

from __future__ import annotations

import hmac
import multiprocessing.connection as sockets
from typing import Any


def authenticate_command(socket: sockets.Connection[Any, Any], secret: bytes) -> None:
    """Let the command prove that it knows the secret, then prove that the link does.

    Raises:
        AuthenticationError: the command does not know it.
        OSError, EOFError: the command is gone.
    """
    sockets.deliver_challenge(socket, _key(secret, b"command"))
    sockets.answer_challenge(socket, _key(secret, b"link"))


def authenticate_link(socket: sockets.Connection[Any, Any], secret: bytes) -> None:
    """Prove that the command knows the secret, then let the link prove that it does.

    Raises:
        AuthenticationError: the link does not know it.
        OSError, EOFError: the link is gone.
    """
    sockets.answer_challenge(socket, _key(secret, b"command"))
    sockets.deliver_challenge(socket, _key(secret, b"link"))


def pipe_name(secret: bytes) -> str:
    """Return the name of a link's Windows pipe.

    All users share the folder of pipes: a name that can be guessed could be taken before the link.
    """
    return rf"\\.\pipe\jlr-{_key(secret, b'pipe').hex()}"


def _key(secret: bytes, use: bytes) -> bytes:
    return hmac.digest(secret, use, "sha256")
