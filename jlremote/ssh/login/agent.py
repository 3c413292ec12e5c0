"""A client of an ssh-agent's socket (draft-ietf-sshm-ssh-agent), with a deadline.

paramiko's client reads SSH_AUTH_SOCK only of its own process, which outlives the shell of that
agent here, and waits for ever on an agent that hangs. On Windows OpenSSH's agent listens at a named
pipe, and Pageant, if that pipe is missing, has a window; a thread asks them for a socket of ours.
"""

from __future__ import annotations

import io
import logging
import socket
import sys
import threading
import time
from contextlib import suppress
from dataclasses import dataclass

from jlremote.laptop.paths import past_others
from jlremote.ssh.wire_format import string, take_string

_LOG = logging.getLogger("jlremote.ssh")
_REQUEST_IDENTITIES, _IDENTITIES_ANSWER = 11, 12
_SIGN_REQUEST, _SIGN_RESPONSE = 13, 14
_FLAGS = {"rsa-sha2-256": 2, "rsa-sha2-512": 4}
_LIST_SECONDS = 5.0
_SIGN_SECONDS = 60.0  # a person may have to touch a token or confirm
_LONGEST = 4 << 20
# Where an agent is looked for that no variable names.
USUAL_PLACE = r"\\.\pipe\openssh-ssh-agent" if sys.platform == "win32" else None


class UnusableKey(Exception):
    """A key in a file or of an agent is of no use; the message says why."""


@dataclass(frozen=True)
class Agent:
    """The agent that listens on a unix socket, or at a named pipe."""

    path: str

    def keys(self) -> dict[bytes, str]:
        """Return the public keys with their comments; none if the agent is missing or late."""
        try:
            answer = self._ask(bytes([_REQUEST_IDENTITIES]), _IDENTITIES_ANSWER, _LIST_SECONDS)
            rest, keys = answer[4:], dict[bytes, str]()
            for _ in range(int.from_bytes(answer[:4], "big")):
                blob, rest = take_string(rest)
                comment, rest = take_string(rest)
                keys[blob] = comment.decode("utf-8", "replace")
        except (OSError, ValueError, UnusableKey) as error:
            _LOG.info("the ssh agent at %s is not used: %s", self.path, error or "no answer")
            return {}
        return keys

    def sign(self, blob: bytes, data: bytes, algorithm: str) -> bytes:
        """Return a signature by the key of `blob`; `UnusableKey` if the agent gives none."""
        flags = _FLAGS.get(algorithm.removesuffix("-cert-v01@openssh.com"), 0)
        request = bytes([_SIGN_REQUEST]) + string(blob) + string(data) + flags.to_bytes(4, "big")
        try:
            return take_string(self._ask(request, _SIGN_RESPONSE, _SIGN_SECONDS))[0]
        except (OSError, ValueError) as error:
            raise UnusableKey(str(error)) from error

    def _ask(self, request: bytes, expected: int, seconds: float) -> bytes:
        deadline = time.monotonic() + seconds
        message = string(request)
        with _socket_for(self.path, message) as agent:
            agent.settimeout(seconds)
            if sys.platform != "win32":
                agent.connect(self.path)
                agent.sendall(message)
            size = int.from_bytes(_read(agent, 4, deadline), "big")
            if not 0 < size < _LONGEST:
                raise UnusableKey(f"an answer of {size} bytes")
            answer = _read(agent, size, deadline)
        if answer[0] != expected:
            raise UnusableKey("it refused")
        return answer[1:]


def _socket_for(path: str, message: bytes) -> socket.socket:
    if sys.platform != "win32":
        return socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    agent, asker = socket.socketpair()
    threading.Thread(target=_answer, args=(path, message, asker), daemon=True).start()
    return agent


def _answer(path: str, message: bytes, asker: socket.socket) -> None:
    with asker, suppress(OSError):
        try:
            pipe = past_others(lambda: io.FileIO(path, "r+"))
            with pipe, io.BufferedReader(pipe) as answer:
                pipe.write(message)
                size = answer.read(4)
                asker.sendall(size + answer.read(min(_LONGEST, int.from_bytes(size, "big"))))
        except FileNotFoundError:
            if path == USUAL_PLACE:
                from paramiko.win_pageant import PageantConnection

                pageant = PageantConnection()
                pageant.send(message)
                asker.sendall(pageant.recv(_LONGEST) or b"")


def _read(agent: socket.socket, size: int, deadline: float) -> bytes:
    received = b""
    while len(received) < size:
        agent.settimeout(max(0.001, deadline - time.monotonic()))
        piece = agent.recv(size - len(received))
        if not piece:
            raise UnusableKey("it closed the connection")
        received += piece
    return received
