"""A local socket joined with its far end on the host."""

from __future__ import annotations

import socket
import struct
import threading
from collections.abc import Callable
from typing import Protocol

from jlremote.ssh.channels.event_loop import PIECE, READ, WRITE, EventLoop
from jlremote.ssh.forward.browser_requests import MOST_OF_A_HEAD, may_be_repeated, most_to_repeat

# Seconds after which a silent client may be waiting for a server that talks first.
_PAUSE = 0.25
_RESET = struct.pack("ii", 1, 0)  # linger for 0 s: closing sends a reset

# Takes a client's socket, its first bytes, and whether to decide by those; see `is_admitted`. Where
# it returns `False`, it has answered the client.
Admits = Callable[[socket.socket, bytearray, bool], bool | None]


class FarEnd(Protocol):
    """The other side of a bridge: an SSH channel of its own, or a stream of a relay."""

    def room(self) -> int: ...  # how many bytes `send` takes now
    def send(self, data: memoryview) -> None: ...
    def send_end(self) -> None: ...  # nothing more will be sent
    def consumed(self, count: int) -> None: ...  # bytes that `received` did not take, passed on now
    def close(self) -> None: ...  # twice is fine


class BridgeOwner(Protocol):
    """The owner of a bridge; called in the loop's thread."""

    def accepted(self, bridge: SocketBridge) -> bool:
        """Return whether bytes may flow: the far end accepted. If not, `start` follows later."""

    def refused(self, bridge: SocketBridge, reason: str) -> None: ...  # it closes itself next
    def failed(self, bridge: SocketBridge) -> None:
        """Handle that the connection to the host was lost: `join` and `start` may follow again."""

    def finished(self, bridge: SocketBridge) -> None: ...  # once: it is closed for some reason


class SocketBridge:
    """Moves bytes both ways between a local socket and a far end.

    With `admits` nothing is passed on before the client's first bytes are admitted. Those of the
    far end wait as long, or it could answer a request that is to be refused; but not for a client
    that is silent.

    If the connection is lost while a GET or a PUT waits for its answer, it is sent again on the
    next one.

    The transport's thread writes data of the far end, straight from the packet; only what the local
    socket does not take at once is kept, and the far end's window limits that. Data for the far end
    is read when it has room, so none of that is kept.
    """

    def __init__(
        self,
        sock: socket.socket,
        loop: EventLoop,
        owner: BridgeOwner,
        admits: Admits | None = None,
    ) -> None:
        self.socket = sock
        self._loop = loop
        self._owner = owner
        self._far: FarEnd | None = None
        self._watched = 0
        self._kept = bytearray()
        # Guards what both threads touch: `_kept`, `_far_ended`, and writing to the socket.
        self._lock = threading.Lock()
        self._admits = admits
        self._admitted = admits is None
        self._open = False  # whether the far end is open, and proved
        self._started = False  # whether the far end's bytes flow, and the client's if admitted
        self._question = bytearray()  # what was passed on since the far end's last byte
        self._most = 0  # bytes that are kept of it
        self._again = memoryview(b"")  # what is left of it to be sent once more
        self._answered = self._local_ended = self._far_ended = self._far_closed = False
        self._closed = False

    @property
    def question(self) -> bytes:
        """The beginning of a request that is to be sent, and was read already."""
        return b"" if self._started else bytes(self._question[:MOST_OF_A_HEAD])

    def join(self, far: FarEnd) -> None:
        """Set the far end, before it opens; again when the last one was lost."""
        with self._lock:
            self._kept.clear()
        self._far = far

    def close(self) -> None:
        """Close both sides in order. Twice is fine."""
        if self._closed:
            return
        self._closed = True
        self._watch(0)
        with self._lock:
            self._kept.clear()
            self.socket.close()
        if self._far is not None:
            self._far.close()
        self._owner.finished(self)

    def abort(self) -> None:
        """Close with a reset: a reader must not take a cut stream for a whole one."""
        if not self._closed:
            self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
            self.close()

    # The far end's events, in the transport's thread.

    def opened(self) -> None:
        self._loop.call(self._begin)

    def refused(self, reason: str) -> None:
        self._loop.call(lambda: self._be_refused(reason))

    def received(self, data: memoryview) -> int:
        with self._lock:
            if self._closed:
                return len(data)
            self._answered = True
            if self._kept or not self._started:
                self._kept += data
                return 0
            sent = self._write(data)
            if sent < len(data):
                self._kept += data[sent:]
                self._loop.call(self._update)
            return sent

    def ended(self) -> None:
        with self._lock:
            self._far_ended = True
            if not self._kept and not self._local_ended:  # else `_update` closes the socket
                self._end_local()
        self._loop.call(self._update)

    def writable(self) -> None:
        self._loop.call(self._resume)

    def closed(self) -> None:
        with self._lock:
            self._far_closed = True
        self._loop.call(self._update)

    def lost(self) -> None:
        self._loop.call(self._be_lost)

    # The local socket's events and everything else, in the loop's thread.

    def _begin(self) -> None:
        if not self._closed and self._owner.accepted(self):
            self.start()

    def start(self) -> None:
        self._open = True
        self._hear()
        if not (self._started or self._closed):
            self._watch(READ)
            self._loop.call_later(_PAUSE, self._be_late)

    def _hear(self) -> None:
        """Read the client's first bytes, until they are admitted; then all of them flow."""
        if not self._admitted:
            piece = self._loop.piece[: MOST_OF_A_HEAD - len(self._question)]
            try:
                count = self.socket.recv_into(piece)
            except BlockingIOError:
                return
            except OSError:
                self.close()
                return
            self._question += piece[:count]
            self._judge(over=not count)
            if not (count or self._admitted):
                self.close()
        if self._admitted and not self._closed:
            self._flow()

    def _judge(self, *, over: bool) -> None:
        assert self._admits is not None
        verdict = self._admits(self.socket, self._question, over)
        if verdict:
            self._admitted = True
            self._most = most_to_repeat(bytes(self._question[:4]))
        elif verdict is False:
            self.close()

    def _be_late(self) -> None:
        if not self._open or self._admitted or self._closed:
            return
        if self._question:
            self._judge(over=True)
        if self._admitted or not self._question:
            self._flow()

    def _flow(self) -> None:
        with self._lock:
            self._started = True
        self._again = memoryview(bytes(self._question))  # empty if the client is silent
        self._resume()

    def _be_refused(self, reason: str) -> None:
        if not self._closed:
            self._owner.refused(self, reason)
            self.close()

    def _be_lost(self) -> None:
        if self._closed:
            return
        if self._started and not self._can_repeat():
            self.abort()
            return
        self._open = False
        with self._lock:
            self._started = self._far_ended = self._far_closed = False
        self._watch(0)
        self._owner.failed(self)

    def _can_repeat(self) -> bool:
        waits = not (self._answered or self._local_ended)
        kept = len(self._question) <= self._most
        return waits and kept and may_be_repeated(bytes(self._question))

    def _note(self, data: memoryview) -> None:
        if self._answered:
            self._answered = False
            self._question.clear()
        if not self._question:
            self._most = most_to_repeat(bytes(data[:4]))
        if len(self._question) <= self._most:
            self._question += data[: self._most + 1]

    def _ready(self, events: int) -> None:
        if self._closed:
            return
        if events & WRITE and self._watched & WRITE:
            self._flush()
        if events & READ and not self._admitted:
            self._hear()
            return
        if events & READ and self._watched & READ and self._read() and self._watched == READ:
            return  # a small message has changed nothing
        self._update()

    def _resume(self) -> None:
        """Read at once: data that waited for room, or for the far end, has most probably come."""
        if self._started and self._admitted and not self._closed and not self._local_ended:
            self._read()
        self._update()

    def _read(self) -> bool:
        """Pass on what has arrived; return whether there is room for more."""
        far = self._far
        assert far is not None
        while self._again and (room := far.room()) > 0:
            again = self._again[: min(room, PIECE)]
            far.send(again)
            self._again = self._again[len(again) :]
        room = far.room()
        if room <= 0 or self._again:
            return False
        piece = self._loop.piece
        if room < PIECE:
            piece = piece[:room]
        try:
            count = self.socket.recv_into(piece)
        except BlockingIOError:
            return True
        except OSError:
            self.close()
            return False
        if count:
            self._note(piece[:count])
            far.send(piece[:count])
            return count < room and not self._far_closed
        self._local_ended = True
        far.send_end()
        return False

    def _flush(self) -> None:
        with self._lock:
            with memoryview(self._kept) as kept:
                sent = self._write(kept[:PIECE])
            del self._kept[:sent]
            if self._far_ended and not self._kept:
                self._end_local()
        assert self._far is not None
        self._far.consumed(sent)

    def _write(self, data: memoryview) -> int:
        try:
            return self.socket.send(data)
        except BlockingIOError:
            return 0
        except OSError:
            self._loop.call(self.close)
            return len(data)

    def _end_local(self) -> None:
        if not self._closed:
            try:
                self.socket.shutdown(socket.SHUT_WR)
            except OSError:  # the other side was faster
                self._loop.call(self.close)

    def _update(self) -> None:
        """Watch the socket for the directions that can go on, or close when none can."""
        if self._closed or not self._started or self._far is None:
            return
        if not self._kept and (self._far_closed or (self._local_ended and self._far_ended)):
            self.close()
            return
        can_read = not (self._local_ended or self._far_closed) and self._far.room() > 0
        self._watch(READ * can_read | WRITE * bool(self._kept))

    def _watch(self, events: int) -> None:
        self._loop.watch(self.socket, self._watched, events, self._ready)
        self._watched = events
