"""One command at the other end of the link's socket, and the script that runs for it."""

from __future__ import annotations

import contextlib
import logging
import multiprocessing.connection as sockets
import os
import socket as plain_sockets
import threading
from collections.abc import Callable, Mapping
from typing import Any

from jlremote.errors import JlrError, LinkLost, NeedsAuthentication, from_json
from jlremote.link.wire import protocol
from jlremote.link.wire.protocol import DATA, PIECES, Message, receive
from jlremote.questions import Question
from jlremote.ssh.channels.session_channel import Piece, StdinPieces, Stream, Terminal
from jlremote.ssh.connection import Connection

log = logging.getLogger(__name__)

# sshd's default `LoginGraceTime`. Other commands wait for this answer meanwhile.
ANSWER_SECONDS = 120.0

# Each message about pieces that were taken wakes the command.
_TOLD_AT_ONCE = PIECES // 2


class Conversation:
    """A connected command with its request; as an `Asker` it reaches the person behind it."""

    def __init__(self, socket: sockets.Connection[Any, Any]) -> None:
        self.request: Message = {}  # empty until it has authenticated
        self._socket = socket
        self._sending = threading.Lock()
        self._watched = False
        self.handed_over = False  # whether its socket carries another protocol by now
        self.cancelled = threading.Event()  # whether its script is to end

    def greet(self, secret: bytes) -> None:
        """Authenticate each other by the secret, and read the request.

        Raise `NotProved` if the other side does not know the secret, and `OSError`, `EOFError` or
        `ValueError` if it is gone, or speaks another protocol.
        """
        protocol.authenticate_command(self._socket, secret)
        self.request = receive(self._socket)

    def say(self, message: Message) -> None:
        with self._sending:
            protocol.send(self._socket, message)

    def ask(self, question: Question) -> str:
        """Put a question to the person at the command.

        Raise `NeedsAuthentication` if no answer came in time or the command has gone, and the
        `JlrError` by which the person declined.
        """
        try:
            self.say({"ask": question.kind, "text": question.text, "echo": question.echo})
            if not self._socket.poll(ANSWER_SECONDS):
                late = f"no answer within {ANSWER_SECONDS:g} s"
                raise NeedsAuthentication(late, hint="run the command again")
            reply = receive(self._socket)
        except (OSError, EOFError, ValueError) as gone:
            raise NeedsAuthentication("the command ended before it answered") from gone
        if "answer" not in reply:
            raise from_json(reply.get("declined") or {})
        return str(reply["answer"])

    def when_gone(self, take: Callable[[Message], None]) -> None:
        """Pass each message, no answer, to `take`, and `end` once the command hangs up."""

        def wait_for_hang_up() -> None:
            try:
                while True:
                    take(receive(self._socket))
            except (OSError, EOFError, ValueError):
                pass
            except Exception:
                log.exception("a command's message was not understood")
            finally:
                take({"end": True})
                with self._sending:  # or a message under way would go to the next owner
                    self._socket.close()

        self._watched = True
        threading.Thread(target=wait_for_hang_up, daemon=True).start()

    def hand_over(self) -> plain_sockets.socket:
        """Send the last message, the result `true`, and return the socket for what follows."""
        self.say({"result": True})
        self.handed_over = True
        return protocol.plain_socket(self._socket)

    def end(self) -> None:
        """Close the socket, unless the thread that waits for the command to hang up does it."""
        if not self._watched:
            self._socket.close()


class CommandStdin(StdinPieces):
    """Pieces of stdin from a command, which sends as many more when some were taken.

    So at most `PIECES` wait here, however fast the command and however slow the host is.
    """

    def __init__(self, conversation: Conversation) -> None:
        super().__init__(self._tell)
        self.open()  # the command itself waits until the script has begun
        self._conversation = conversation
        self._untold = 0

    def arrived(self, message: Message) -> None:
        """Receive the command's next message; raise `ValueError` if it is not a piece."""
        if "given" not in message or not isinstance(message.get(DATA), bytes):
            raise ValueError(f"not a piece of stdin: {message.keys()}")
        self.add(message[DATA])

    def _tell(self, pieces: int) -> None:
        self._untold += pieces
        if self._untold >= _TOLD_AT_ONCE:
            taken, self._untold = self._untold, 0
            with contextlib.suppress(OSError):  # a command that is gone ends the script elsewhere
                self._conversation.say({"taken": taken})


def run(
    conversation: Conversation,
    connection: Connection,
    script: str,
    variables: Mapping[str, str],
    *,
    shown: str | None = None,
) -> int:
    """Run a script, pass its output on as it comes, and return its exit status.

    Raise `LinkLost` if the connection broke or the command has gone, and `JlrError` if it did not
    end within the command's limit.
    """
    request = conversation.request
    cancelled, decided = conversation.cancelled, threading.Event()
    given = CommandStdin(conversation) if request.get("gives") else None
    asked = request.get("terminal")
    terminal = Terminal(str(asked["kind"]), _size(asked["size"])) if asked else None

    def take(message: Message) -> None:
        if "begin" in message:
            decided.set()
        elif "end" in message:
            cancelled.set()
            decided.set()
            if given is not None:
                given.wake()  # Ctrl-C on a followed log must not wait for its next line
        elif given is None:
            raise ValueError(f"the script takes no stdin, and got {message.keys()}")
        elif terminal is not None and "size" in message:
            terminal.size = _size(message["size"])
            given.wake()
        else:
            given.arrived(message)

    def pass_on(stream: Stream, data: Piece) -> None:
        # Raises, because a flood of output leaves no time to look at `cancelled`.
        _say(conversation, {"stream": stream, DATA: data})

    _say(conversation, {"connected": True, **({} if shown is None else {"script": shown})})
    conversation.when_gone(take)
    decided.wait()  # nothing begins that is cancelled by now

    try:
        return connection.execute(
            protocol.bytes_of(script),
            pass_on,
            timeout=request.get("timeout"),
            cancelled=cancelled,
            stdin=given,
            hold_stdin=bool(request.get("hold_stdin")),
            terminal=terminal,
            variables=variables,
        )
    except TimeoutError as late:
        hint = "`uptime` on the host shows whether it is overloaded"
        text = f"the host did not finish within {request.get('timeout'):g} s"
        raise JlrError(text, hint=hint) from late


def _say(conversation: Conversation, message: Message) -> None:
    try:
        conversation.say(message)
    except OSError as gone:
        conversation.cancelled.set()
        raise LinkLost("the command has ended") from gone


def _size(value: Any) -> os.terminal_size:
    columns, rows = map(int, value)
    return os.terminal_size((columns, rows))
