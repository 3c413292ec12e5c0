"""One command of a client on the host: a thread, the command's input, and its end."""

from __future__ import annotations

import logging
import os
import threading
import time
from collections.abc import Callable
from typing import Protocol

from jlremote.errors import Busy, JlrError, LinkLost
from jlremote.host.framing import FromMarker, announced, ended_early, new_marker
from jlremote.link.wire.protocol import bytes_of
from jlremote.ssh.contract import Connection, Output, Stdin, Stream, Terminal
from jlremote.ssh.sessions.pieces import StdinPieces
from jlremote.ssh.sessions.typed_text import TypedText

log = logging.getLogger(__name__)

# How long a command waits for the link's connection, and for a free session on it.
CONNECTION_SECONDS = 30.0
SESSION_SECONDS = 15.0
_PAUSE = 0.1
FAILED = 255  # as ssh, where it is not the command's own status
PIPE_CLOSED = 141  # 128 + SIGPIPE
# Pieces of output that the client may leave unread before the host has to wait.
_PIECES = 16

Connect = Callable[[float], Connection]


def on_free_session(
    connect: Connect, cancelled: threading.Event, execute: Callable[[Connection], int]
) -> int:
    """Execute a command once the link is connected and has a free session.

    Raises:
        LinkLost: the client has gone meanwhile, or the connection broke.
        Busy: none was free for `SESSION_SECONDS`.
    """
    until = time.monotonic() + SESSION_SECONDS
    while True:
        connection = connect(CONNECTION_SECONDS)
        try:
            return execute(connection)
        except Busy:
            if time.monotonic() > until:
                raise
            if cancelled.wait(_PAUSE):
                raise LinkLost("the client has gone") from None


class CommandClient(Protocol):
    """The client's side of a command; called from its thread, never blocks."""

    def printed(self, stream: Stream, data: bytes) -> None:
        """Send output; `RemoteCommand.sent` follows for each piece."""

    def consumed(self) -> None:
        """Note that some of the input was passed on."""

    def over(self, status: int, error: JlrError | None) -> None:
        """Send the exit status, after the error for the person if jlr failed."""


class RemoteCommand:
    """Runs one script on the host in a thread; `stdin` gets what the client sends.

    The script is `given` something before that, in a terminal where that shows `word`.
    """

    def __init__(
        self,
        script: str,
        terminal: Terminal | None,
        client: CommandClient,
        given: bytes = b"",
        word: str = "",
    ) -> None:
        self._terminal = terminal
        self._client = client
        marker = new_marker()
        self._script = script if terminal else announced(script, marker)
        self._streams = {name: FromMarker(marker) for name in ("stdout", "stderr")}
        self._given, self._word = given, word
        self.stdin = StdinPieces(lambda _: client.consumed())
        if terminal:
            self.stdin.open()
        elif given:
            self.stdin.add(given)
        self._unsent = threading.Semaphore(_PIECES)
        self._cancelled = threading.Event()
        self._reader_left = False

    def start(self, connect: Connect) -> None:
        """Run it on the connection that `connect` returns."""
        threading.Thread(target=self._run, args=(connect,), name="ssh-command", daemon=True).start()

    def resized(self, size: os.terminal_size) -> None:
        if self._terminal is not None:
            self._terminal.size = size
            self.stdin.wake()

    def sent(self) -> None:
        """Note that the client has taken a piece of output."""
        self._unsent.release()

    def reader_left(self) -> None:
        """End it as a closed pipe would, with its next output."""
        self._reader_left = True
        self._unsent.release()  # the client may take no more

    def cancel(self) -> None:
        """End it: the client has gone."""
        self._cancelled.set()
        self._unsent.release()
        self.stdin.wake()

    # In the command's thread.

    def _run(self, connect: Connect) -> None:
        try:
            status = self._execute(connect)
        except JlrError as error:
            if self._reader_left:
                self._client.over(PIPE_CLOSED, None)
            else:
                self._client.over(FAILED, error)
        except Exception as bug:
            log.exception("a command of an ssh client failed")
            self._client.over(FAILED, JlrError(f"the link failed: {bug!r}"))
        else:
            self._client.over(status, None)

    def _execute(self, connect: Connect) -> int:
        status = on_free_session(connect, self._cancelled, self._execute_on)
        if self._terminal is None and not self._streams["stdout"].begun:
            raise ended_early(*(stream.noise for stream in self._streams.values()))
        return status

    def _execute_on(self, connection: Connection) -> int:
        stdin: Stdin = self.stdin
        output: Output = self._output
        if self._terminal is not None and self._given:
            stdin = typed = TypedText(self._given, self._word, self.stdin, self._output)
            output = typed.output
        return connection.execute(
            bytes_of(self._script),
            output,
            cancelled=self._cancelled,
            stdin=stdin,
            terminal=self._terminal,
        )

    def _output(self, stream: Stream, data: bytes) -> None:
        if self._terminal is None:
            data = self._streams[stream].take(data)
            if self._streams["stdout"].begun:
                self.stdin.open()
        if not data:
            return
        self._unsent.acquire()
        if self._cancelled.is_set() or (self._reader_left and stream == "stdout"):
            raise LinkLost("the client has gone")
        self._client.printed(stream, data)
