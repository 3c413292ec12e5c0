"""Runs a command in a container with its stdin and stdout past the engine's `exec`.

Its text runs in any Python from 3.6 with only the standard library, so it imports nothing of ours
and uses no newer syntax. `ssh/sessions/direct_streams.py` is the other side.

Run as `python3 -c TEXT WORD ADDRESS COMMAND…`. It listens on a port of ADDRESS, prints
`WORD PORT SECRET` and a newline, and starts the command at once; what that reads and prints goes
through the own stdin and stdout at first. A connection that begins with SECRET may take both over:

- Before the first output there come 8 bytes: how many bytes went to the own stdout before it.
- With 8 such bytes in the other direction, input comes that follows so many bytes of the own stdin.

Stderr and the exit status, 128 + N for signal N, stay with `exec`. If it cannot listen it prints
`WORD 0 -` and becomes the command.
"""
# ruff: noqa: S606, SIM105 - it becomes the command; `contextlib` takes long to load

import _thread
import fcntl
import os
import select
import signal
import socket
import struct
import sys
import termios
import time

_COUNT = struct.Struct(">Q")
_SECRET_BYTES = 32
_GUESSES = 8  # wrong secrets, then it listens no more
_PATIENCE = 10.0  # seconds for a secret
_PIECE = 1 << 20
_SET_PIPE_SIZE = 1031  # F_SETPIPE_SZ, which Python 3.10 names
_PAUSES = (0.001, 0.25)  # seconds; each is twice the one before
_TCP_CLOSED = 7  # in `tcp_info` of Linux
# The shell says what is wrong with a command that it cannot run, and with which status it ends.
_RUN = ("/bin/sh", "-c", 'exec "$@"', "sh")


def _listen(address: str) -> socket.socket:
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM)
    listener.bind((address, 0))
    listener.listen(_GUESSES)
    return listener


def _write(target: int, data: memoryview) -> None:
    while data:
        data = data[os.write(target, data) :]


def _receive(sock: socket.socket, count: int) -> bytes:
    """Return `count` bytes, fewer at the end."""
    data = b""
    while len(data) < count:
        piece = sock.recv(count - len(data))
        if not piece:
            break
        data += piece
    return data


def _is_unread(sock: socket.socket) -> bool:
    """Return whether output is on the way that the other side may still read.

    After a reset the kernel goes on to count what it has thrown away.
    """
    waiting = struct.unpack("i", fcntl.ioctl(sock, termios.TIOCOUTQ, bytes(4)))[0]
    state = sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 1)[0]
    return bool(waiting and state != _TCP_CLOSED)


def _large_pipe() -> "list[int]":
    ends = os.pipe()
    try:
        fcntl.fcntl(ends[1], _SET_PIPE_SIZE, _PIECE)
    except OSError:  # the user has too many already
        pass
    return list(ends)


class DirectCommand:
    """The command, and the threads that move its input and output."""

    def __init__(self, argv: "list[str]") -> None:
        self.given, self.input = _large_pipe()
        self.output, self.printed = _large_pipe()
        self.ended = os.pipe()
        self.taken_over = os.pipe()
        self.drained = _thread.allocate_lock()
        self.sock: socket.socket | None = None
        self.due: int | None = None
        self.pid = self.start(argv)

    def start(self, argv: "list[str]") -> int:
        """Start it; return its process id."""
        ignored = [signal.SIGHUP, signal.SIGINT, signal.SIGQUIT, signal.SIGTERM, signal.SIGUSR1]
        ignored += [signal.SIGUSR2, signal.SIGALRM]
        # A signal to the group is for the command: this process ends after it.
        before = [(number, signal.signal(number, signal.SIG_IGN)) for number in ignored]
        before.append((signal.SIGPIPE, signal.SIG_DFL))
        pid = os.fork()
        if pid == 0:
            for number, handler in before:
                signal.signal(number, handler)
            os.dup2(self.given, 0)
            os.dup2(self.printed, 1)
            os.execv(_RUN[0], _RUN + tuple(argv))
        os.close(self.given)
        os.close(self.printed)
        return int(pid)

    def admit(self, listener: socket.socket, secret: bytes) -> None:
        """Wait for the other side; then for its first input that comes this way."""
        for _ in range(_GUESSES):
            sock = listener.accept()[0]
            sock.settimeout(_PATIENCE)
            try:
                known = _receive(sock, len(secret)) == secret
            except OSError:
                known = False
            if known:
                break
            sock.close()
        else:
            return
        listener.close()
        sock.settimeout(None)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.sock = sock
        count = _receive(sock, _COUNT.size)
        if len(count) == _COUNT.size:
            (self.due,) = _COUNT.unpack(count)
            os.write(self.taken_over[1], b"!")

    def feed(self) -> None:
        """Give it its input, until that ends."""
        piece = memoryview(bytearray(_PIECE))
        taken, watched = 0, [0, self.taken_over[0]]
        while self.due is None or taken < self.due:
            ready = select.select(watched, [], [])[0]
            if self.taken_over[0] in ready:
                watched = [0]
                continue
            count = os.readv(0, [piece])
            if not count:
                break
            taken += count
            self.give(piece[:count])
        else:
            assert self.sock is not None
            while True:
                count = self.sock.recv_into(piece)
                if not count:
                    break
                self.give(piece[:count])
        os.close(self.input)

    def give(self, data: memoryview) -> None:
        try:
            _write(self.input, data)
        except OSError:  # it reads no more
            pass

    def drain(self) -> None:
        """Pass on what it prints, until that ends, or it has ended and all is passed on."""
        piece = memoryview(bytearray(_PIECE))
        printed = 0
        sock: socket.socket | None = None
        try:
            while True:
                if self.output not in select.select([self.output, self.ended[0]], [], [])[0]:
                    break
                count = os.readv(self.output, [piece])
                if not count:
                    break
                if sock is None and self.sock is not None:
                    sock = self.sock
                    sock.sendall(_COUNT.pack(printed))
                if sock is not None:
                    sock.sendall(piece[:count])
                else:
                    _write(1, piece[:count])
                    printed += count
            if sock is not None:
                sock.shutdown(socket.SHUT_WR)
                # What the other side has sent and is not read would cut off what it is to read.
                pause = _PAUSES[0]
                while _is_unread(sock):
                    time.sleep(pause)
                    pause = min(2 * pause, _PAUSES[1])
        except OSError:
            os.close(self.output)  # it is read no more: the command gets a SIGPIPE
        finally:
            self.drained.release()

    def run(self, listener: socket.socket, secret: bytes) -> int:
        """Serve it until it ends; return its exit status."""
        self.drained.acquire()
        _thread.start_new_thread(self.drain, ())
        _thread.start_new_thread(self.feed, ())
        _thread.start_new_thread(self.admit, (listener, secret))
        status = os.waitpid(self.pid, 0)[1]
        os.close(self.ended[1])
        self.drained.acquire()
        return int(os.WEXITSTATUS(status) if os.WIFEXITED(status) else 128 + os.WTERMSIG(status))


def _main(word: str, address: str, *argv: str) -> None:
    try:
        listener = _listen(address)
    except OSError:
        _write(1, memoryview(f"{word} 0 -\n".encode()))
        os.execv(_RUN[0], _RUN + argv)
    secret = os.urandom(_SECRET_BYTES // 2).hex().encode()
    port = listener.getsockname()[1]
    line = f"{word} {port} {secret.decode()}\n"
    _write(1, memoryview(line.encode()))
    os._exit(DirectCommand(list(argv)).run(listener, secret))


if __name__ == "__main__":
    _main(*sys.argv[1:])
