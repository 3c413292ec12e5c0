"""One command at the other end of the link's socket, and the person behind it."""

from __future__ import annotations

import contextlib
import multiprocessing.connection as sockets
import threading
from collections.abc import Callable
from typing import Any

from jlremote.errors import NeedsAuthentication, from_json
from jlremote.link.wire.protocol import receive, send
from jlremote.questions import Question

Message = dict[str, Any]

# As long as sshd waits for a login by default. Meanwhile everybody else waits for this answer.
ANSWER_SECONDS = 120.0


class Conversation:
    """One command at the other end; also the person behind it, who can be asked.

    Attributes:
        request: what the command wants, once it has been greeted.
    """

    def __init__(self, socket: sockets.Connection[Any, Any]) -> None:
        self.request: Message = {}
        self._socket = socket
        self._sending = threading.Lock()
        self._watched = False

    def greet(self, secret: bytes) -> None:
        """Find out that the other side knows the secret, prove that we do, and take its request.

        Raises:
            AuthenticationError: it does not.
            OSError, EOFError, ValueError: it is gone, or speaks otherwise.
        """
        sockets.deliver_challenge(self._socket, secret)
        sockets.answer_challenge(self._socket, secret)
        self.request = receive(self._socket)

    def say(self, message: Message) -> None:
        """Send one message."""
        with self._sending:
            send(self._socket, message)

    def ask(self, question: Question) -> str:
        """Put a question to the person at the command.

        Raises:
            NeedsAuthentication: nobody answered in time, or nobody is there any more.
            JlrError: the person declined.
        """
        try:
            self.say({"ask": question.kind, "text": question.text, "echo": question.echo})
            if not self._socket.poll(ANSWER_SECONDS):
                raise NeedsAuthentication(
                    f"nobody answered within {ANSWER_SECONDS:g} s", hint="run the command again"
                )
            reply = receive(self._socket)
        except (OSError, EOFError, ValueError) as gone:
            raise NeedsAuthentication("the command that was asked has gone") from gone
        if "answer" not in reply:
            raise from_json(reply.get("declined") or {})
        return str(reply["answer"])

    def when_gone(
        self, then: Callable[[], None], take: Callable[[Message], None] | None = None
    ) -> None:
        """Call `then` once the command hangs up; it can be asked nothing afterwards.

        What it says until then goes to `take`; without that it is taken for hanging up.
        """
        self._watched = True
        threading.Thread(target=self._wait_for_hang_up, args=(then, take), daemon=True).start()

    def _wait_for_hang_up(
        self, then: Callable[[], None], take: Callable[[Message], None] | None
    ) -> None:
        with self._socket, contextlib.suppress(OSError, EOFError, ValueError):
            message = receive(self._socket)
            while take is not None:
                take(message)
                message = receive(self._socket)
        then()

    def end(self) -> None:
        """Let go of the command.

        Where a thread waits for it to hang up, closing is left to that one: by the time it reads,
        the descriptor could be another conversation's.
        """
        if not self._watched:
            self._socket.close()
