"""One `ssh` of this laptop that runs a command over the link's connection.

It finds the link at its `ControlPath`, as it would find another `ssh`, and passes its own stdin,
stdout and stderr. So it makes no connection, and no byte is encrypted on the laptop once more. What
needs more than a command has a connection of its own (`editors/connection_sharing`); if it comes
here after all, it is refused, and ssh goes on by itself.
"""

from __future__ import annotations

import logging
import os
import secrets
import socket
import struct
import sys
import threading
from collections.abc import Callable
from contextlib import closing, suppress
from dataclasses import dataclass
from functools import partial

from jlremote.errors import JlrError
from jlremote.link.ssh_server import passed_streams, served_place
from jlremote.link.ssh_server.passed_streams import PassedStreams
from jlremote.link.ssh_server.served_place import FAILED, PIPE_CLOSED, Connect, ServedPlace
from jlremote.link.wire.protocol import bytes_of
from jlremote.place.host.framing import announced, new_marker
from jlremote.place.runtimes.runtime import Attachment
from jlremote.place.runtimes.scripts import shell_scripts, variables
from jlremote.ssh.interfaces import Connection

log = logging.getLogger(__name__)

_SESSION = 1  # our number for the one session of a client
_ANSWER_SECONDS = 10.0
# An `ssh` that finds no connection here makes one itself, which can wait for longer.
_CONNECTION_SECONDS = 1.0


# Whether a session's container, by its name and the container's id, is known to run.
Runs = Callable[[str, str, Connection], bool]


@dataclass(frozen=True)
class SharedPlace:
    """Where the commands run, and how the link reaches it."""

    place: ServedPlace
    connect: Connect
    runs: Runs

    def is_sure(self, connection: Connection) -> bool:
        """Return whether the place is known to run."""
        if self.place.session is None:
            return self.place.is_on_host  # of containers that are no session nothing is known
        return self.runs(self.place.session, self.place.container_id, connection)


class Denied(Exception):
    """What was asked for is not done here; the text is for the person."""


class ControlClient:
    """The client's side of the conversation, in a thread of its own."""

    def __init__(self, client: socket.socket, shared: SharedPlace) -> None:
        self._socket = client
        self._messages = ControlMessages(client)
        self._shared = shared
        self._cancelled = threading.Event()
        self._stop: Callable[[], None] = lambda: None
        self._command: threading.Thread | None = None
        self._reason = ""  # why it was ended, if the client did not leave by itself

    def serve(self) -> None:
        """Answer until the client leaves, and end its command then.

        Raises:
            Denied: it wanted what is not done here, and knows.
            OSError, struct.error: it did not speak the protocol, or was too slow.
        """
        self._socket.settimeout(_ANSWER_SECONDS)
        try:
            self._greet()
            while (message := self._messages.receive()) is not None:
                self._answer(message)
        finally:
            self._cancelled.set()
            self._stop()
            if self._command is not None:
                self._command.join()
            self._socket.close()

    def end(self, reason: str) -> None:
        """End the command from another thread, and tell the person why."""
        self._reason = reason
        self._hang_up()

    def _hang_up(self) -> None:
        with suppress(OSError):  # it has ended
            self._socket.shutdown(socket.SHUT_RDWR)

    def _greet(self) -> None:
        message = self._messages.receive()
        if message is None or message.number() != HELLO or message.number() != VERSION:
            raise struct.error("not a client of this protocol")
        self._messages.send(HELLO, VERSION)

    def _answer(self, message: ControlFields) -> None:
        kind, request = message.number(), message.number()
        if kind == ALIVE_CHECK:
            self._messages.send(ALIVE, request, os.getpid())
            return
        try:
            argv, given, streams = self._command_of(kind, message)
        except Denied as denied:
            self._messages.send(DENIED, request, str(denied).encode())
            raise
        marker = new_marker()
        passed = PassedStreams(streams, marker, bytes_of(given))
        run = partial(self._run, argv, given, passed, marker)
        command = threading.Thread(target=run, name="shared-command", daemon=True)
        try:
            self._messages.send(OPENED, request, _SESSION)
            self._socket.settimeout(None)
            command.start()
        except BaseException:
            passed.close()
            raise
        self._stop, self._command = passed.stop, command

    def _command_of(
        self, kind: int, message: ControlFields
    ) -> tuple[tuple[str, ...], str, tuple[int, ...]]:
        """Return the argv, the variables and the streams that a client asks for."""
        if kind != NEW_SESSION or self._command is not None:
            raise Denied("only commands share the connection of jlr")
        message.string()  # reserved
        terminal, x11, agent, subsystem, _ = (message.number() for _ in range(5))
        message.string()  # the kind of terminal
        line = os.fsdecode(message.string())
        pairs = (os.fsdecode(each).partition("=") for each in message.strings())
        _, given = variables.parted(served_place.allowed({name: value for name, _, value in pairs}))
        taken = self._messages.take_descriptors(3)
        try:
            self._check(
                more=bool(terminal or x11 or agent), other=bool(subsystem) and line != "sftp"
            )
            streams = passed_streams.opened_anew(taken)
        finally:
            passed_streams.close_all(taken)
        if streams is None:
            raise Denied("a terminal has a connection of its own")
        if subsystem:
            return shell_scripts.sftp_argv(), given, streams
        return served_place.line_argv(line) if line else (), given, streams

    def _check(self, *, more: bool, other: bool) -> None:
        if more:
            raise Denied("a terminal or agent has a connection of its own")
        if other:
            raise Denied("`sftp` is the only subsystem")
        try:
            connection = self._shared.connect(_CONNECTION_SECONDS)
        except JlrError as error:
            raise Denied(error.message) from error
        if not self._shared.is_sure(connection):
            raise Denied(f"jlr has to look whether `{self._shared.place.selector}` runs")

    # In the command's thread.

    def _run(self, argv: tuple[str, ...], given: str, passed: PassedStreams, marker: str) -> None:
        try:
            with closing(passed):
                status = self._status(argv, given, passed, marker)
            self._messages.send(EXIT, _SESSION, status)
        except OSError as gone:
            log.info("a client of `%s` has left: %r", self._shared.place.selector, gone)
        finally:
            self._hang_up()

    def _status(self, argv: tuple[str, ...], given: str, passed: PassedStreams, marker: str) -> int:
        mark = secrets.token_hex(8)
        script = self._shared.place.command(argv, Attachment(None), mark, given)
        content = bytes_of(announced(script, marker))

        def execute(connection: Connection) -> int:
            return connection.execute(
                content, passed.output, cancelled=self._cancelled, stdin=passed.stdin
            )

        try:
            status = served_place.on_free_session(self._shared.connect, self._cancelled, execute)
            passed.check_begun()
        except passed_streams.ReaderLeft:
            return PIPE_CLOSED
        except JlrError as error:
            if self._reason:
                passed.tell(f"jlr: {self._reason}\n")
            elif not self._cancelled.is_set():
                passed.tell(f"{served_place.failure_line(error)}\n")
            return FAILED
        except Exception as bug:
            log.exception("a command of an ssh client failed")
            passed.tell(f"jlr: the link failed: {bug!r}\n")
            return FAILED
        return status


VERSION = 4
HELLO, NEW_SESSION, ALIVE_CHECK = 0x00000001, 0x10000002, 0x10000004
DENIED, EXIT, ALIVE, OPENED = 0x80000002, 0x80000004, 0x80000005, 0x80000006
_NUMBER = struct.Struct(">I")
_MOST_BYTES = 4 << 20  # of one message


class ControlFields:
    """The numbers and strings of a message, one after another."""

    def __init__(self, data: bytes) -> None:
        self._data, self._at = data, 0

    def number(self) -> int:
        (number,) = _NUMBER.unpack_from(self._data, self._at)
        self._at += _NUMBER.size
        return int(number)

    def string(self) -> bytes:
        size = self.number()
        self._at += size
        if self._at > len(self._data):
            raise struct.error("a string is longer than its message")
        return self._data[self._at - size : self._at]

    def strings(self) -> list[bytes]:
        """Return all that is left."""
        strings = []
        while self._at < len(self._data):
            strings.append(self.string())
        return strings


class ControlMessages:
    """The messages of one client's socket, both ways."""

    def __init__(self, client: socket.socket) -> None:
        self._socket = client

    def receive(self) -> ControlFields | None:
        """Return the next message, `None` if the client has left; no byte more is read.

        Raises:
            struct.error: it is too long.
        """
        head = self._read(_NUMBER.size)
        if head is None:
            return None
        (size,) = _NUMBER.unpack(head)
        if size > _MOST_BYTES:
            raise struct.error(f"a message of {size} bytes")
        body = self._read(size)
        return None if body is None else ControlFields(body)

    def _read(self, size: int) -> bytes | None:
        data = b""
        while len(data) < size:
            piece = self._socket.recv(size - len(data))
            if not piece:
                return None
            data += piece
        return data

    def take_descriptors(self, count: int) -> list[int]:
        """Return descriptors that follow a message, each with a byte of its own.

        Raises:
            struct.error: one is missing.
        """
        if sys.platform == "win32":
            raise NotImplementedError
        taken: list[int] = []
        while len(taken) < count:
            came, descriptors, _, _ = socket.recv_fds(self._socket, 1, 1)
            taken += descriptors
            if not came or not descriptors:
                for one in taken:
                    os.close(one)
                raise struct.error("a descriptor is missing")
        for one in taken:
            os.set_inheritable(one, False)
        return taken

    def send(self, *fields: int | bytes) -> None:
        packed = (
            _NUMBER.pack(each) if isinstance(each, int) else _NUMBER.pack(len(each)) + each
            for each in fields
        )
        body = b"".join(packed)
        self._socket.sendall(_NUMBER.pack(len(body)) + body)
