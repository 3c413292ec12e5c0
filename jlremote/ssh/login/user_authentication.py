"""The messages of RFC 4252 and 4256: one request, one answer.

paramiko's own handler answers keyboard-interactive prompts on the thread that reads the
connection, counts the person's typing against a time limit, signs before it asks whether the
server accepts the key, and hides which methods remain. This one does none of that.
"""

from __future__ import annotations

import queue
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import paramiko
from paramiko import common

from jlremote.ssh.wire_format import string

TOO_MANY = "too many authentication failures"  # sshd's words

# The number 60 has a different meaning in each method (RFC 4252 section 7, RFC 4256 section 3.2).
_METHOD_SPECIFIC = 60
_MOST_PROMPTS = 100  # a message of five bytes could claim 2**32 empty ones


@dataclass(frozen=True)
class Outcome:
    """The result of an attempt."""

    success: bool  # whether the login is complete
    methods: tuple[str, ...] = ()  # the methods that the server accepts next
    partial: bool = False  # whether the attempt was right and another method is needed too
    expired: str | None = None  # why the server takes the password only with a new one


class Challenge(NamedTuple):
    """The questions of keyboard-interactive: prompts, each with whether to echo the answer."""

    title: str
    instructions: str
    prompts: tuple[tuple[str, bool], ...]


class UserAuthentication:
    """The client's side of one connection's authentication."""

    def __init__(self, transport: Any, user: str, seconds: float) -> None:
        # The server's texts after its first refusal, and those of keyboard-interactive that no
        # question followed: why an account may not log in.
        self.reasons: list[str] = []
        self.attempts: Counter[str] = Counter()  # how many times each method was requested
        self._refused = False
        self._transport = transport
        self._user = user
        self._seconds = seconds
        self._answers: queue.SimpleQueue[tuple[int, Any] | None] = queue.SimpleQueue()
        self._authenticated = False
        transport.auth_handler = self

    def begin(self) -> Outcome:
        """Request a login without a credential; the answer names the methods."""
        request = common.cMSG_SERVICE_REQUEST + string(b"ssh-userauth")
        self._transport._send_message(paramiko.Message(request))
        kind, _ = self._wait()
        if kind != common.MSG_SERVICE_ACCEPT:
            expected = common.MSG_SERVICE_ACCEPT
            raise paramiko.SSHException(f"unexpected message {kind}, not {expected}")
        return self._ask("none")

    def wants_key(self, algorithm: str, blob: bytes) -> Outcome | None:
        """Ask whether the server accepts a key; `None` means that it does."""
        self._send("publickey", b"\0" + string(algorithm.encode()) + string(blob))
        kind, message = self._wait()
        return None if kind == _METHOD_SPECIFIC else self._outcome(kind, message)

    def key(self, algorithm: str, blob: bytes, sign: Callable[[bytes], bytes]) -> Outcome:
        details = b"\1" + string(algorithm.encode()) + string(blob)
        request = self._request("publickey", details)
        signature = sign(string(self._transport.session_id) + request)
        return self._ask("publickey", details + string(signature))

    def password(self, password: str) -> Outcome:
        self._send("password", b"\0" + string(password.encode()))
        kind, message = self._wait()
        if kind == _METHOD_SPECIFIC:
            return Outcome(success=False, expired=_text(message))
        return self._outcome(kind, message)

    def interactive(self, answer: Callable[[Challenge], Sequence[str]]) -> Outcome:
        """Log in with answers to prompts; `answer` is called for each round of them."""
        self._send("keyboard-interactive", string(b"") + string(b""))
        kind, message = self._wait()
        while kind == _METHOD_SPECIFIC:
            replies = answer(_challenge(message))
            head = common.cMSG_USERAUTH_INFO_RESPONSE + len(replies).to_bytes(4, "big")
            answers = b"".join(string(reply.encode()) for reply in replies)
            self._transport._send_message(paramiko.Message(head + answers))
            kind, message = self._wait()
        return self._outcome(kind, message)

    def turned_away(self) -> bool:
        """Return whether the server hung up, as it does after the last permitted attempt."""
        return TOO_MANY in self._transport.disconnection.lower()

    def server_signatures(self) -> tuple[str, ...] | None:
        """Return the signature algorithms that the server accepts, `None` if it named none."""
        listed = self._transport.server_extensions.get("server-sig-algs")
        return tuple(listed.decode("ascii", "replace").split(",")) if listed else None

    def _ask(self, method: str, details: bytes = b"") -> Outcome:
        self._send(method, details)
        return self._outcome(*self._wait())

    def _send(self, method: str, details: bytes) -> None:
        self.attempts[method] += 1
        self._transport._send_message(paramiko.Message(self._request(method, details)))

    def _request(self, method: str, details: bytes) -> bytes:
        names = (self._user, "ssh-connection", method)
        head = b"".join(string(name.encode("utf-8", "surrogateescape")) for name in names)
        return bytes(common.cMSG_USERAUTH_REQUEST) + head + details

    def _outcome(self, kind: int, message: Any) -> Outcome:
        if kind == common.MSG_USERAUTH_SUCCESS:
            return Outcome(success=True)
        if kind != common.MSG_USERAUTH_FAILURE:
            raise paramiko.SSHException(f"unexpected message {kind} during authentication")
        methods = tuple(message.get_string().decode("ascii", "replace").split(","))
        return Outcome(success=False, methods=methods, partial=message.get_boolean())

    def _wait(self) -> tuple[int, Any]:
        try:
            answer = self._answers.get(timeout=self._seconds)
        except queue.Empty:
            raise TimeoutError from None
        if answer is None:
            raise self._transport.get_exception() or EOFError("the server closed the connection")
        return answer

    # Called by paramiko's transport, from its thread.

    @property
    def _handler_table(self) -> dict[int, Callable[[Any], None]]:
        kinds: tuple[int, ...] = (common.MSG_USERAUTH_SUCCESS, common.MSG_USERAUTH_FAILURE)
        kinds += (common.MSG_SERVICE_ACCEPT, _METHOD_SPECIFIC)
        answers = {kind: partial(self._take, kind) for kind in kinds}
        return {**answers, common.MSG_USERAUTH_BANNER: self._show}

    def _take(self, kind: int, message: Any) -> None:
        if self._authenticated:
            return  # nothing reads answers after that
        self._refused = self._refused or kind == common.MSG_USERAUTH_FAILURE
        if kind == common.MSG_USERAUTH_SUCCESS:
            self._authenticated = True
            self._transport._auth_trigger()  # compression begins with the very next packet
        self._answers.put((kind, message))

    def _show(self, message: Any) -> None:
        if self._refused:
            self.reasons.append(_text(message))

    def is_authenticated(self) -> bool:
        return self._authenticated

    def abort(self) -> None:
        self._answers.put(None)


def _challenge(message: Any) -> Challenge:
    title, instructions, _language = (_text(message) for _ in range(3))
    count = message.get_int()
    if count > _MOST_PROMPTS:
        raise paramiko.SSHException(f"the server asks {count} questions at once")
    prompts = tuple((_text(message), message.get_boolean()) for _ in range(count))
    return Challenge(title, instructions, prompts)


def _text(message: Any) -> str:
    text: str = message.get_string().decode("utf-8", "replace")
    return text
