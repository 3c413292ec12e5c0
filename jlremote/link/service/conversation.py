"""One command at the other end of the link's socket."""

from __future__ import annotations

import logging
import multiprocessing.connection as sockets
import os
import socket as plain_sockets
import threading
from collections.abc import Callable
from typing import Any

from jlremote.errors import NeedsAuthentication, from_json
from jlremote.link.wire.authentication import authenticate_command
from jlremote.link.wire.protocol import Message, receive, send
from jlremote.questions import Question

log = logging.getLogger(__name__)

# sshd's default `LoginGraceTime`. Other commands wait for this answer meanwhile.
ANSWER_SECONDS = 120.0


class Conversation:
    """A connected command with its request; as an `Asker` it reaches the person behind it."""

    def __init__(self, socket: sockets.Connection[Any, Any]) -> None:
        self.request: Message = {}  # empty until it has authenticated
        self._socket = socket
        self._sending = threading.Lock()
        self._watched = False
        self.handed_over = False  # whether its socket carries another protocol by now

    def greet(self, secret: bytes) -> None:
        """Authenticate each other by the secret, and read the request.

        Raises:
            NotProved: the other side does not know the secret.
            OSError, EOFError, ValueError: it is gone, or speaks another protocol.
        """
        authenticate_command(self._socket, secret)
        self.request = receive(self._socket)

    def say(self, message: Message) -> None:
        with self._sending:
            send(self._socket, message)

    def ask(self, question: Question) -> str:
        """Put a question to the person at the command.

        Raises:
            NeedsAuthentication: no answer came in time, or the command has gone.
            JlrError: the person declined.
        """
        try:
            self.say({"ask": question.kind, "text": question.text, "echo": question.echo})
            if not self._socket.poll(ANSWER_SECONDS):
                raise NeedsAuthentication(
                    f"no answer within {ANSWER_SECONDS:g} s", hint="run the command again"
                )
            reply = receive(self._socket)
        except (OSError, EOFError, ValueError) as gone:
            raise NeedsAuthentication("the command ended before it answered") from gone
        if "answer" not in reply:
            raise from_json(reply.get("declined") or {})
        return str(reply["answer"])

    def when_gone(
        self, then: Callable[[], None], take: Callable[[Message], None] | None = None
    ) -> None:
        """Call `then` once the command hangs up; from now on it can be asked nothing.

        Its messages until then go to `take`; without `take` any message counts as hanging up.
        """

        def wait_for_hang_up() -> None:
            try:
                message = receive(self._socket)
                while take is not None:
                    take(message)
                    message = receive(self._socket)
            except (OSError, EOFError, ValueError):
                pass
            except Exception:
                log.exception("a command's message was not understood")
            finally:
                then()
                with self._sending:  # or a message under way would go to the next owner
                    self._socket.close()

        self._watched = True
        threading.Thread(target=wait_for_hang_up, daemon=True).start()

    def hand_over(self) -> plain_sockets.socket:
        """Say a result of `true`, the last message, and return the socket for what follows it."""
        self.say({"result": True})
        self.handed_over = True
        return plain_sockets.socket(fileno=os.dup(self._socket.fileno()))

    def end(self) -> None:
        """Close the socket.

        A thread that waits for the command to hang up closes it instead: the descriptor could be
        another conversation's by the time that it reads.
        """
        if not self._watched:
            self._socket.close()
