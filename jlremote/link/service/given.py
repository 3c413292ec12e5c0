"""The stdin of a script, sent piece by piece by the command."""

from __future__ import annotations

import base64
import contextlib
import queue
from collections.abc import Callable

from jlremote.link.service.conversation import Conversation, Message


class GivenByCommand:
    """Pieces of stdin from a command, which sends the next one when one was taken.

    So at most one waits here, however fast the command and however slow the host is.

    Attributes:
        wake: wakes the thread that runs the script.
    """

    def __init__(self, conversation: Conversation) -> None:
        self._conversation = conversation
        self._pieces: queue.SimpleQueue[bytes] = queue.SimpleQueue()
        self.wake: Callable[[], None] = lambda: None

    def arrived(self, message: Message) -> None:
        """Receive the command's next message.

        Raises:
            ValueError: it is not a piece.
        """
        if "given" not in message:
            raise ValueError(f"not a piece of stdin: {message.keys()}")
        self._pieces.put(base64.b64decode(str(message["given"]), validate=True))
        self.wake()

    def on_ready(self, wake: Callable[[], None]) -> None:
        """Call `wake` whenever a piece has come."""
        self.wake = wake

    def take(self) -> bytes | None:
        """Return the next piece, and let the command send another."""
        try:
            piece = self._pieces.get_nowait()
        except queue.Empty:
            return None
        if piece:
            with contextlib.suppress(
                OSError
            ):  # the command is gone, which ends the script elsewhere
                self._conversation.say({"taken": True})
        return piece
