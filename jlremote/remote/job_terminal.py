"""The terminal of a job that is a process of its host, and what shows it in another terminal.

The job's keeper has it (`JobTerminal`); stdout gets all that the command prints. Where it prints a
marker, which is left out, it is given its variables. `attach` connects another terminal to it by
`socket`. A terminal is sent what is in the file `stdout`, at its own speed, so none that was lost
holds up the job. Both are in the job's folder, which is the present one: paths of sockets have 107
bytes at most.
"""

import contextlib
import fcntl
import os
import pty
import select
import signal
import socket
import struct
import termios
import time
import tty
from typing import Callable, Dict, List, Optional

from jlremote.remote.orphans import become, reaped

HEAD = struct.Struct("!cHH")  # one of these, and two numbers
KEYS = b"k"  # so many bytes follow
SIZE = b"s"  # rows and columns
SHOW = b"o"  # the first: whether to send the whole output
SOCKET = "socket"
PIECE = 1 << 15
MISSED_BYTES = 1 << 16  # that a terminal is shown again at most
# A command waits for a terminal that is so far behind, unless that has taken nothing for a while.
BEHIND_BYTES, STALLED_SECONDS = 1 << 20, 10
LEAVING_SECONDS = 5  # for terminals to take the last of the output


def woken_by(which: int) -> int:
    """Return a descriptor that can be read after a signal has come."""
    reading, writing = os.pipe()
    os.set_blocking(reading, False)
    os.set_blocking(writing, False)
    signal.signal(which, lambda *_: None)
    signal.set_wakeup_fd(writing)
    return reading


class Watcher:
    """A terminal that shows the job's."""

    def __init__(self, connection: socket.socket) -> None:
        self.connection = connection
        self.seen = -1  # the bytes of the output that it has, -1 before its first request
        self.given = b""
        self.moved = time.monotonic()  # when it last took something


class JobTerminal:
    """The job's terminal, and those that show it."""

    def __init__(self, marker: bytes, variables: bytes) -> None:
        self.listener = socket.socket(socket.AF_UNIX)
        self.listener.bind(SOCKET)
        self.listener.listen(8)
        self.listener.setblocking(False)
        self.output = os.open("stdout", os.O_RDONLY)
        self.size = self.missed = 0  # bytes of it, and how many of them were shown
        self.marker, self.variables = marker if variables else b"", variables
        self.held = b""
        self.typed = b""  # what the terminal has not taken yet
        self.dimensions = (24, 80)
        self.watchers: Dict[int, Watcher] = {}
        self.woken = woken_by(signal.SIGCHLD)
        self.child = self.terminal = -1
        self.open = True

    def begin(self, command: List[bytes], prepare: Callable[[], object]) -> None:
        """Begin the command there, after `prepare` in its process."""
        self.child, self.terminal = pty.fork()
        if not self.child:
            try:
                self.set_size(0, self.dimensions)
                os.environ["TERM"] = "xterm-256color"
                prepare()
                become(command)
            finally:
                os._exit(127)
        os.set_blocking(self.terminal, False)

    def set_size(self, terminal: int, size: "tuple[int, int]") -> None:
        fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("4H", size[0], size[1], 0, 0))

    def to_the_end(self) -> int:
        """Serve until the command has ended; return its exit code."""
        code = None
        while code is None:
            self.turn()
            ended = reaped()
            while ended is not None:
                code = ended[1] if ended[0] == self.child else code
                ended = reaped()
        while self.open and self.read():
            pass
        self.record(self.held)
        os.unlink(SOCKET)
        self.typed = self.marker = b""
        last = time.monotonic() + LEAVING_SECONDS
        while self.accept():
            pass
        while time.monotonic() < last and any(each.seen < self.size for each in self.all()):
            self.turn()
        for watcher in self.all():
            watcher.connection.close()
        return code

    def all(self) -> List[Watcher]:
        return list(self.watchers.values())

    def accept(self) -> bool:
        """Accept a terminal that has connected; return whether there was one."""
        try:
            connection = self.listener.accept()[0]
        except OSError:
            return False
        connection.setblocking(False)
        self.watchers[connection.fileno()] = Watcher(connection)
        return True

    def turn(self) -> None:
        """Wait for the next events and handle them."""
        events = select.poll()
        events.register(self.woken, select.POLLIN)
        events.register(self.listener, select.POLLIN)
        if self.open and (self.typed or not self.is_held_up()):
            reads = 0 if self.is_held_up() else select.POLLIN
            events.register(self.terminal, reads | (select.POLLOUT if self.typed else 0))
        for descriptor, watcher in self.watchers.items():
            # Keys wait for one another, and for the variables.
            takes = 0 if self.typed or self.marker else select.POLLIN
            events.register(
                descriptor, takes | (select.POLLOUT if 0 <= watcher.seen < self.size else 0)
            )
        ready = dict(events.poll(1000))
        if self.woken in ready:
            os.read(self.woken, PIECE)
        if self.listener.fileno() in ready:
            self.accept()
        if ready.get(self.terminal, 0) & select.POLLOUT:
            self.write()
        if ready.get(self.terminal, 0) & ~select.POLLOUT:
            self.read()
        for descriptor, watcher in list(self.watchers.items()):
            if descriptor in ready and not self.serve(watcher, ready[descriptor]):
                self.missed = max(self.missed, watcher.seen)
                watcher.connection.close()
                del self.watchers[descriptor]

    def is_held_up(self) -> bool:
        now = time.monotonic()
        return any(
            w.seen >= 0 and self.size - w.seen > BEHIND_BYTES and now - w.moved < STALLED_SECONDS
            for w in self.all()
        )

    def read(self) -> bool:
        """Take what the command has printed; return whether there was some."""
        try:
            data = os.read(self.terminal, PIECE)
        except BlockingIOError:
            return False
        except OSError:  # EIO: every process has closed it
            data = b""
        self.open = bool(data)
        if not self.marker:
            self.record(data)
            return self.open
        before, found, after = (self.held + data).partition(self.marker)
        self.held = b"" if found else before
        if found:
            self.marker = b""
            self.typed = self.variables
            self.record(before + after)
        return self.open

    def record(self, data: bytes) -> None:
        while data:
            try:
                written = os.write(1, data)
            except OSError:  # the disk is full: what is lost is at least shown
                for watcher in self.all():
                    with contextlib.suppress(OSError):
                        watcher.connection.send(data)
                return
            self.size += written
            data = data[written:]

    def write(self) -> None:
        try:
            self.typed = self.typed[os.write(self.terminal, self.typed) :]
        except BlockingIOError:
            pass
        except OSError:
            self.typed = b""

    def serve(self, watcher: Watcher, ready: int) -> bool:
        """Send output to a terminal and take its requests; return whether it is still there."""
        try:
            if ready & select.POLLOUT:
                data = os.pread(self.output, PIECE, watcher.seen)
                watcher.seen += watcher.connection.send(data)
                watcher.moved = time.monotonic()
            if ready & ~select.POLLOUT:
                data = watcher.connection.recv(PIECE)
                watcher.given += data
                self.obey(watcher)
                return bool(data)
        except BlockingIOError:
            return True
        except OSError:
            return False
        return True

    def obey(self, watcher: Watcher) -> None:
        """Handle the requests of a terminal that have come whole."""
        while len(watcher.given) >= HEAD.size:
            kind, one, two = HEAD.unpack_from(watcher.given)
            end = HEAD.size + (one if kind == KEYS else 0)
            if len(watcher.given) < end:
                return
            if kind == KEYS:
                self.typed += watcher.given[HEAD.size : end]
            elif kind == SHOW:
                shown = max([self.missed, *(each.seen for each in self.all())])
                watcher.seen = 0 if one else max(self.size - MISSED_BYTES, shown)
            else:
                self.resize((one, two))
            watcher.given = watcher.given[end:]

    def resize(self, size: "tuple[int, int]") -> None:
        """Set the size; a program that draws the whole screen draws it anew even if it stays."""
        if size == self.dimensions:
            self.set_size(self.terminal, (size[0] + 1, size[1]))
        self.dimensions = size
        self.set_size(self.terminal, size)


class DetachFilter:
    """A filter that takes the keys which detach out of those that are typed."""

    def __init__(self, keys: bytes) -> None:
        self.keys = keys
        self.matched = 0

    def without(self, typed: bytes) -> bytes:
        """Return the keys for the job; keys that may begin to detach wait for the next."""
        out = b""
        for number in typed:
            if self.keys[self.matched] != number:
                out += self.keys[: self.matched]
                self.matched = 0
            if self.keys[self.matched] == number:
                self.matched += 1
                if self.typed:
                    break
            else:
                out += bytes([number])
        return out

    @property
    def typed(self) -> bool:
        return self.matched == len(self.keys)


def show(data: bytes) -> None:
    """Write all of it on this terminal."""
    while data:
        data = data[os.write(1, data) :]


def connected() -> Optional[socket.socket]:
    """Connect to the keeper of a job; return nothing once that has ended."""
    connection = socket.socket(socket.AF_UNIX)
    try:
        connection.connect(SOCKET)
    except OSError:
        connection.close()
        return None
    return connection


def show_last(whole: bool) -> None:
    """Show the output of a job that has just ended."""
    with open("stdout", "rb") as file:
        if not whole:
            file.seek(max(0, os.fstat(file.fileno()).st_size - MISSED_BYTES))
        for data in iter(lambda: file.read(PIECE), b""):
            show(data)


def attach(whole: bool, keys: DetachFilter) -> bool:
    """Connect this terminal to a job's; return `True` at the job's end, `False` if detached.

    First show the whole output, or the last of what no terminal has shown.
    """
    connection = connected()
    if connection is None:
        show_last(whole)
        return True
    woken = woken_by(signal.SIGWINCH)
    before = termios.tcgetattr(0)
    tty.setraw(0, termios.TCSANOW)  # what was typed meanwhile stays
    try:
        connection.sendall(HEAD.pack(SHOW, whole, 0) + size())
        return converse(connection, woken, keys)
    except OSError:
        return True
    finally:
        termios.tcsetattr(0, termios.TCSADRAIN, before)


def size() -> bytes:
    """Return the request for this terminal's size."""
    rows, columns = struct.unpack("4H", fcntl.ioctl(0, termios.TIOCGWINSZ, bytes(8)))[:2]
    return HEAD.pack(SIZE, rows, columns)


def converse(connection: socket.socket, woken: int, keys: DetachFilter) -> bool:
    """Pass keys, sizes and output on; return whether the job has ended."""
    events = select.poll()
    for descriptor in (0, woken, connection.fileno()):
        events.register(descriptor, select.POLLIN)
    while True:
        ready = dict(events.poll())
        if woken in ready:
            os.read(woken, PIECE)
            connection.sendall(size())
        if connection.fileno() in ready:
            data = connection.recv(PIECE)
            if not data:
                return True
            show(data)
        if 0 in ready:
            data = os.read(0, PIECE)
            given = keys.without(data)
            if given:
                connection.sendall(HEAD.pack(KEYS, len(given), 0) + given)
            if keys.typed or not data:
                return False
