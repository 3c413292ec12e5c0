"""What a command gives a script to read, piece by piece."""

from __future__ import annotations

import base64
import contextlib
import queue
from collections.abc import Callable

from jlremote.link.service.conversation import Conversation, Message


class GivenByCommand:
    """Pieces from a command, which sends the next one only when one was taken.

    So no more than one waits here, however fast the command and however slow the host is.

    Attributes:
        wake: lets the script's keeper look whether there is something to take.
    """

    def __init__(self, conversation: Conversation) -> None:
        self._conversation = conversation
        self._pieces: queue.SimpleQueue[bytes] = queue.SimpleQueue()
        self.wake: Callable[[], None] = lambda: None

    def arrived(self, message: Message) -> None:
        """Take what the command says next.

        Raises:
            ValueError: it is no piece.
        """
        if "given" not in message:
            raise ValueError(f"no piece, but {message.keys()}")
        self._pieces.put(base64.b64decode(str(message["given"]), validate=True))
        self.wake()

    def on_ready(self, wake: Callable[[], None]) -> None:
        """Have `wake` called whenever a piece has come."""
        self.wake = wake

    def take(self) -> bytes | None:
        """Return the next piece, and let the command send another one meanwhile."""
        try:
            piece = self._pieces.get_nowait()
        except queue.Empty:
            return None
        if piece:
            with contextlib.suppress(OSError):  # it is gone, and whoever notices ends the script
                self._conversation.say({"taken": True})
        return piece
