"""A network between laptop and host on loopback, which a test makes slow, silent, cut or down."""

from __future__ import annotations

import socket
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from queue import Queue

from tests.lab.ports import free_port
from tests.lab.programs import PATIENCE

CHUNK = 256 * 1024
# What a line holds that swallows everything: enough for any probe, and less than memory.
MOST_CHUNKS = 64


def on_loopback(port: int) -> socket.socket:
    return socket.create_server(("127.0.0.1", port), backlog=128)


class Line:
    """A TCP port of 127.0.0.1 that passes connections on to another port there, or elsewhere.

    Args:
        addresses: where the target is. Of several each connection gets the next that answers, as
            from the load balancer before a cluster's login nodes.
        delay: seconds that every byte takes, each way; half of a round trip.
        rate: bytes a second that each connection carries back, if it has a limit.
        listen: gives a listener on a port, if it is not to be on 127.0.0.1.
    """

    def __init__(
        self,
        target: int,
        *,
        addresses: Sequence[str] = ("127.0.0.1",),
        delay: float = 0.0,
        rate: float | None = None,
        listen: Callable[[int], socket.socket] = on_loopback,
    ) -> None:
        self.target = target
        self._addresses = deque(addresses)
        self.delay = delay
        self.rate = rate
        self.carried = 0  # bytes that went back so far
        self._listen = listen
        self.port = free_port()
        self.connections = 0
        self._flowing = threading.Event()
        self._flowing.set()
        self._lock = threading.Lock()
        self._open: list[socket.socket] = []
        self._listener: socket.socket | None = None
        self.bring_up()

    def bring_up(self) -> None:
        """Listen, on the same port as before."""
        self._listener = self._listen(self.port)
        threading.Thread(target=self._accept, args=(self._listener,), daemon=True).start()

    def take_down(self) -> None:
        """Cut every connection and refuse new ones."""
        if self._listener is not None:
            # `close` alone would leave the accepting thread where it waits.
            self._listener.shutdown(socket.SHUT_RDWR)
            self._listener.close()
        self._listener = None
        self.cut()

    def stall(self) -> None:
        """Deliver nothing and refuse nothing, as a network that vanished does."""
        self._flowing.clear()

    def resume(self) -> None:
        """Deliver again, held bytes first."""
        self._flowing.set()

    def cut(self) -> None:
        """End every connection; new ones are accepted."""
        with self._lock:
            ended, self._open = self._open, []
        for end in ended:
            with suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
            end.close()

    def close(self) -> None:
        """Take the line down for good. Twice is fine."""
        self.take_down()
        self.resume()

    def _accept(self, listener: socket.socket) -> None:
        while True:
            try:
                near, _ = listener.accept()
            except OSError:  # the listener was closed
                return
            with suppress(OSError):  # it was cut before it began
                self._connect(near)

    def _connect(self, near: socket.socket) -> None:
        far = self._reach()
        if far is None:
            near.close()
            return
        with self._lock:
            self._open += [near, far]
            self.connections += 1
        for here, there in ((near, far), (far, near)):
            here.settimeout(None)
            here.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self._pipe(here, there, back=here is far)

    def _reach(self) -> socket.socket | None:
        for _ in range(len(self._addresses)):
            self._addresses.rotate(-1)
            with suppress(OSError):
                return socket.create_connection((self._addresses[-1], self.target), PATIENCE)
        return None

    def _pipe(self, source: socket.socket, sink: socket.socket, *, back: bool) -> None:
        """Carry bytes one way; two threads, for a long line holds many chunks at once."""
        under_way: Queue[tuple[float, bytes]] = Queue(MOST_CHUNKS)
        deliver = partial(self._deliver, back=back)
        for work, end in ((self._take, source), (deliver, sink)):
            threading.Thread(target=work, args=(end, under_way), daemon=True).start()

    def _take(self, source: socket.socket, under_way: Queue[tuple[float, bytes]]) -> None:
        data = b"-"
        while data:
            try:
                data = source.recv(CHUNK)
            except OSError:
                data = b""
            under_way.put((time.monotonic() + self.delay, data))

    def _deliver(
        self, sink: socket.socket, under_way: Queue[tuple[float, bytes]], *, back: bool
    ) -> None:
        """Send what is due; the empty chunk is the end, after which the queue is only emptied."""
        data = b"-"
        while data:
            due, data = under_way.get()
            time.sleep(max(0.0, due - time.monotonic()))
            self._flowing.wait()
            with suppress(OSError):
                if data:
                    sink.sendall(data)
                else:
                    sink.shutdown(socket.SHUT_WR)
            if back:
                self.carried += len(data)
                time.sleep(len(data) / self.rate if self.rate else 0)
