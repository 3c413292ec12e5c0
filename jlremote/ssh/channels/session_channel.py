"""Session channels: one that counts among `MaxSessions`, and a script's, with what it is given."""

from __future__ import annotations

import os
import threading
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal, Protocol, TypeVar

from jlremote.ssh.channels.channel_registry import BUSY_PAUSE, PAUSES
from jlremote.ssh.channels.event_loop import Action
from jlremote.ssh.channels.tunnel_channel import TunnelChannel

Stream = Literal["stdout", "stderr"]
Output = Callable[[Stream, bytes], object]
Label = TypeVar("Label")
Piece = bytes | memoryview

# Bytes that are taken at once, unless a single piece has more.
AT_ONCE = 256 << 10


class Stdin(Protocol):
    """Input that follows a script on its stdin, and arrives piece by piece."""

    def take(self) -> bytes | None:
        """Return the next piece, empty at the end, `None` if it has not arrived yet."""

    def on_ready(self, wake: Callable[[], None]) -> None:
        """Call `wake` whenever there may be another piece."""


@dataclass
class Terminal:
    """The terminal of a script: `$TERM` there, and its size, which follows the person's."""

    kind: str
    size: os.terminal_size


class SudoPassword(Protocol):
    """The source of the password for `sudo` on the host."""

    def password_for(self, script: bytes) -> str | None: ...  # `None` if it needs none
    def refused(self) -> None: ...  # `sudo` seems to have refused it


class SessionChannel(TunnelChannel):
    """A channel that counts among the sessions of its connection; see `TunnelChannel`."""

    _is_session = False  # ScriptChannel asks for other channels, too
    _refusals = 0  # while no command ran

    def ask_session(self) -> None:
        """Open a session that may last for hours; `refused` if too many are open."""
        if refusal := self._registry.slots.keep(self):
            super().refuse(refusal)
        else:
            self._call(self.begin)

    def begin(self) -> None:
        """Open a session; the owner counts it."""
        self._is_session = True
        if not self._close_sent:
            self.ask(b"session")

    def refuse(self, reason: str) -> None:
        """Ask again soon while another session may end; sshd says only "open failed"."""
        if not self._is_session:
            super().refuse(reason)
            return
        self._awaits_answer = False  # before `_close_sent` is read: `close` does the opposite
        is_busy = self._registry.slots.make_room()
        goes_on = not self._close_sent and self._transport.is_active()
        if goes_on and (is_busy or self._refusals < len(PAUSES)):
            pause = BUSY_PAUSE if is_busy else PAUSES[self._refusals]
            self._refusals += not is_busy
            again = threading.Timer(pause, lambda: self._call(self.begin))
            again.daemon = True
            again.start()
            return
        super().refuse(
            f"no further session on this connection ({reason}); the host's `MaxSessions` may be low"
        )

    def _release(self) -> None:
        super()._release()
        self._registry.slots.end(self)


def _take(waiting: deque[tuple[Label, Piece]]) -> tuple[Label, list[Piece]] | None:
    """Take neighbours of one label, `None` if nothing waits; another thread may add pieces."""
    if not waiting:
        return None
    label, pieces, size = waiting[0][0], list[Piece](), 0
    while size < AT_ONCE and waiting and waiting[0][0] == label:
        pieces.append(waiting.popleft()[1])
        size += len(pieces[-1])
    return label, pieces


class StdinPieces:
    """Input of a script, as its `Stdin`; an empty piece is the end.

    Nothing is taken before `open`: the shell reads its script first, and may read ahead.
    `on_taken` is called with how many pieces were taken; `waiting` is how many bytes were not.
    """

    def __init__(self, on_taken: Callable[[int], None] = lambda _: None) -> None:
        self.wake: Callable[[], None] = lambda: None
        self._on_taken = on_taken
        self._pieces: deque[tuple[bool, Piece]] = deque()  # the end is not joined with others
        self._is_open = False
        self._added = self._taken = 0  # bytes, each counted by one thread

    @property
    def waiting(self) -> int:
        return self._added - self._taken

    def open(self, first: bytes = b"") -> None:
        """Let the input pass, after what comes `first`. Twice is fine."""
        if not self._is_open:
            if first:
                self._taken -= len(first)
                self._pieces.appendleft((True, first))
            self._is_open = True
            self.wake()

    def add(self, piece: Piece) -> None:
        self._added += len(piece)
        self._pieces.append((bool(piece), piece))
        self.wake()

    # `Stdin`, in the script's thread.

    def on_ready(self, wake: Callable[[], None]) -> None:
        self.wake = wake

    def take(self) -> bytes | None:
        taken = _take(self._pieces) if self._is_open else None
        if taken is None:
            return None
        self._taken += sum(map(len, taken[1]))
        self._on_taken(len(taken[1]))
        return b"".join(taken[1])


class ScriptChannel(SessionChannel):
    """A channel that one thread opens, sends on and takes from, such as a script's.

    The transport's thread leaves here what comes, and sets `wake`. So this is the channel's own
    handler, too.
    """

    def __init__(self, transport: Any) -> None:
        super().__init__(transport, self, self._leave, partial(self._keep, "stderr"))
        self.wake = threading.Event()  # something has come, or there is room to send more
        self.answered = threading.Event()  # the server granted or refused the channel, or is gone
        self.is_granted = False
        self.refusal: str | None = None  # sshd says no more than "open failed" of a session
        self.is_accepted = False  # the last request that wanted a reply
        self.exit = threading.Event()  # `exit_status` is known, or will never be
        self.exit_status: int | None = None
        self.exited_at = 0.0  # in seconds of the monotonic clock; output may follow it
        self.has_ended = False  # the far end sends no more output
        self.is_over = False  # it has closed the channel, or is gone
        self._output: deque[tuple[Stream, Piece]] = deque()
        self._actions: deque[Action] = deque()

    def take(self) -> tuple[Stream, bytes] | None:
        """Return output of one stream, `None` if there is none; report it to `consumed`."""
        taken = _take(self._output)
        return None if taken is None else (taken[0], b"".join(taken[1]))

    def run_actions(self) -> None:
        """Send what other threads left to this one."""
        while self._actions:
            self._actions.popleft()()

    def _leave(self, action: Action) -> None:
        self._actions.append(action)
        self.wake.set()

    # `ChannelHandler`, in the transport's thread.

    def opened(self) -> None:
        self.is_granted = True
        self.answered.set()
        self.wake.set()

    def refused(self, reason: str) -> None:
        self.refusal = reason
        self.lost()

    def received(self, data: memoryview) -> int:
        return len(data) - self._keep("stdout", data)

    def _keep(self, stream: Stream, data: Piece) -> int:
        self._output.append((stream, data))
        self.wake.set()
        return len(data)

    def ended(self) -> None:
        self.has_ended = True
        self.wake.set()

    def writable(self) -> None:
        self.wake.set()

    def exited(self, status: int) -> None:
        self.exit_status = status
        self.exited_at = time.monotonic()
        self.exit.set()
        self.wake.set()

    def lost(self) -> None:
        self.is_over = True
        for event in (self.answered, self.exit, self.wake):
            event.set()

    closed = lost

    def _request_success(self, _message: Any) -> None:
        self.is_accepted = True

    def _request_failed(self, _message: Any) -> None:
        self.lost()
