"""One session channel of a client: a shell, a command or the `sftp` subsystem."""

from __future__ import annotations

import asyncio
import logging
import os
import secrets
import threading
import time
from contextlib import suppress
from fnmatch import fnmatchcase
from typing import Any

import asyncssh

from jlremote.errors import Busy, JlrError, LinkLost
from jlremote.link.ssh_server import client_connection
from jlremote.link.ssh_server.client_connection import Connect, PlaceForwards, PlaceSocket, soon
from jlremote.link.wire.protocol import bytes_of
from jlremote.place.host import process_mark
from jlremote.place.host.framing import FromMarker, announced, ended_early, new_marker
from jlremote.place.host.shell_text import KEEP_ODD_VARIABLES, command_line
from jlremote.place.runtimes.place import Place
from jlremote.place.runtimes.runtime import Attachment
from jlremote.place.runtimes.scripts import shell_scripts, variables
from jlremote.ssh.channels.session_channel import Output, Stdin, StdinPieces, Stream, Terminal
from jlremote.ssh.channels.shell_session import TypedText
from jlremote.ssh.connection import Connection

log = logging.getLogger(__name__)

# Variables that a client may set, as OpenSSH on Debian has it, and git's own.
_ALLOWED = ("LANG", "LC_*", "COLORTERM", "NO_COLOR", "GIT_PROTOCOL")
# sshd gives a command to the user's login shell; a container's is bash where it has one.
_LINE = f"""\
[ -x "${{SHELL:-}}" ] || SHELL=$(command -v bash || command -v sh)
set -- "$SHELL" -c "$1"
{KEEP_ODD_VARIABLES}exec "$@"
"""
# How long a command waits for a free session on the link's connection.
_SESSION_SECONDS = 15.0
_PAUSE = 0.1
_FAILED = 255  # as ssh, where it is not the command's own status
_PIPE_CLOSED = 141  # 128 + SIGPIPE
# Input that waits for the host; beyond it the client has to wait.
_MOST_INPUT = 4 << 20
_BUFFER = 4 << 20
# Pieces of output that the client may leave unread before the host has to wait.
_PIECES = 16
_SIGNAL_SECONDS = 10.0
_END_OF_INPUT = b"\x04"  # Ctrl-D, which a terminal takes for an end of file
_NO_SIZE = os.terminal_size((80, 24))


class CommandChannel(asyncssh.SSHServerSession[bytes]):
    """A channel of a client, with its events in the loop's thread and its command in another."""

    def __init__(self, place: Place, connect: Connect, forwards: PlaceForwards) -> None:
        self._place = place
        self._connect = connect
        self._forwards = forwards
        self._agent: PlaceSocket | None = None
        self._loop = asyncio.get_running_loop()
        self._argv: tuple[str, ...] = ()
        self._mark = secrets.token_hex(8)
        self._marker = new_marker()
        self._marked = {name: FromMarker(self._marker) for name in ("stdout", "stderr")}
        self._terminal: Terminal | None = None
        self._given = b""  # what the script gets before the client's input
        self._stdin = StdinPieces(self._taken)
        self._room = threading.Semaphore(_PIECES)
        self._unsent = 0  # pieces of output
        self._reading = True
        self._paused = False
        self._has_reader = True
        self._cancelled = threading.Event()  # the client has gone

    def connection_made(self, chan: asyncssh.SSHServerChannel[bytes]) -> None:
        self._channel = chan
        chan.set_write_buffer_limits(high=_BUFFER)
        # Under the name by which asyncssh looks for it; it knows none of OpenSSH's own requests.
        vars(chan)["_process_eow_at_openssh_dot_com_request"] = self._reader_left

    def pty_requested(self, term_type: str, term_size: Any, term_modes: Any) -> bool:
        return True

    def shell_requested(self) -> bool:
        return True

    def exec_requested(self, command: str) -> bool:
        self._argv = ("sh", "-c", _LINE, "sh", command)
        return True

    def subsystem_requested(self, subsystem: str) -> bool:
        """Serve files; the session's own `sftp-server` does it where there is one."""
        self._argv = shell_scripts.sftp_argv()
        return subsystem == "sftp"

    def session_started(self) -> None:
        environment = {
            name: value
            for name, value in self._channel.get_environment().items()
            if name.isascii() and name.isidentifier()  # as shells take them
            if any(fnmatchcase(name, pattern) for pattern in _ALLOWED)
        }
        connection = self._channel.get_connection()
        assert isinstance(connection, asyncssh.SSHServerConnection)
        starting = self._start(connection.get_agent_path(), environment)
        self._starting = asyncio.ensure_future(starting)

    async def _start(self, agent: str | None, environment: dict[str, str]) -> None:
        if agent is not None and (lent := await self._forwards.lend_agent(agent)) is not None:
            self._agent, environment["SSH_AUTH_SOCK"] = lent
        kind = self._channel.get_terminal_type()
        if kind is not None:
            columns, rows, *_ = self._channel.get_terminal_size()
            self._terminal = Terminal(kind or "xterm-256color", _size(columns, rows))
        attached = Attachment(self._terminal.size if self._terminal else None)
        _, given = variables.parted(environment)
        script = shell_scripts.script(
            *(self._place.runtime, self._place.name, attached, self._argv, self._mark),
            given=given,
            marked=True,
        )
        self._given = bytes_of(given)
        threading.Thread(target=self._run, args=(script,), name="ssh-command", daemon=True).start()

    def data_received(self, data: bytes, datatype: asyncssh.DataType) -> None:
        self._stdin.add(data)
        if self._stdin.waiting > _MOST_INPUT and self._reading:
            self._reading = False
            self._channel.pause_reading()
            self._consumed()  # the command may have taken all of it meanwhile

    def eof_received(self) -> bool:
        """End the command's input; its output goes on."""
        in_terminal = self._channel.get_terminal_type() is not None
        self._stdin.add(_END_OF_INPUT if in_terminal else b"")
        return True

    def _reader_left(self, _packet: Any) -> bool:
        """End the command: what reads the client's stdout has gone (OpenSSH's PROTOCOL 2.1)."""
        self._has_reader = False
        self._room.release()  # the client may take no more
        return True

    def terminal_size_changed(self, width: int, height: int, pixwidth: int, pixheight: int) -> None:
        if self._terminal is not None:
            self._terminal.size = _size(width, height)
            self._stdin.wake()

    def signal_received(self, signal: str) -> None:
        """Send the command a signal; another command on the host does it."""
        argv = process_mark.signal_argv(self._mark, signal)
        attached = self._place.runtime.attached(self._place.name, argv, Attachment(), {})
        script = bytes_of(f"{command_line(attached)}\n")

        def send() -> None:
            with suppress(JlrError, TimeoutError):
                connection = self._connect(client_connection.CONNECTION_SECONDS)
                connection.execute(script, lambda *_: None, timeout=_SIGNAL_SECONDS)

        threading.Thread(target=send, name="ssh-signal", daemon=True).start()

    def pause_writing(self) -> None:
        self._paused = True

    def resume_writing(self) -> None:
        self._paused = False
        self._all_sent()

    def connection_lost(self, exc: Exception | None) -> None:
        if self._agent is not None:
            self._agent.close()
        self._cancelled.set()
        self._room.release()
        self._stdin.wake()

    # In the command's thread.

    def _run(self, script: str) -> None:
        status, failure = _FAILED, None
        try:
            status = self._on_free_session(script)
        except JlrError as error:
            status, failure = (_FAILED, error) if self._has_reader else (_PIPE_CLOSED, None)
        except Exception as bug:
            log.exception("a command of an ssh client failed")
            failure = JlrError(f"the link failed: {bug!r}")
        soon(self._loop, self._over, status, failure)

    def _on_free_session(self, script: str) -> int:
        until = time.monotonic() + _SESSION_SECONDS
        while True:
            try:
                return self._execute(script, self._connect(client_connection.CONNECTION_SECONDS))
            except Busy:
                if time.monotonic() > until:
                    raise
                if self._cancelled.wait(_PAUSE):
                    raise LinkLost("the client has gone") from None

    def _execute(self, script: str, connection: Connection) -> int:
        stdin: Stdin = self._stdin
        output: Output = self._output
        if self._terminal is None:
            script = announced(script, self._marker)
        else:
            self._stdin.open()
            if self._given:
                stdin = typed = TypedText(self._given, self._mark, stdin, output)
                output = typed.output
        status = connection.execute(
            bytes_of(script),
            output,
            cancelled=self._cancelled,
            stdin=stdin,
            terminal=self._terminal,
        )
        if self._terminal is None and not self._marked["stdout"].begun:
            raise ended_early(*(stream.noise for stream in self._marked.values()))
        return status

    def _output(self, stream: Stream, data: bytes) -> None:
        if self._terminal is None:
            data = self._marked[stream].take(data)
            if self._marked["stdout"].begun:
                self._stdin.open(self._given)
        if not data:
            return
        self._room.acquire()
        if self._cancelled.is_set() or not (self._has_reader or stream == "stderr"):
            raise LinkLost("the client has gone")
        soon(self._loop, self._print, stream, data)

    def _taken(self, _pieces: int) -> None:
        if not self._reading and self._stdin.waiting < _MOST_INPUT // 2:
            soon(self._loop, self._consumed)

    # In the loop's thread.

    def _print(self, stream: Stream, data: bytes) -> None:
        if self._cancelled.is_set():
            return
        kind = asyncssh.EXTENDED_DATA_STDERR if stream == "stderr" else None
        with suppress(OSError):  # the client has closed it, as `connection_lost` tells soon
            self._channel.write(data, kind)
        self._unsent += 1
        if not self._paused:
            self._all_sent()

    def _all_sent(self) -> None:
        while self._unsent:
            self._unsent -= 1
            self._room.release()

    def _consumed(self) -> None:
        has_room = self._stdin.waiting < _MOST_INPUT // 2
        if not self._reading and has_room and not self._cancelled.is_set():
            self._reading = True
            self._channel.resume_reading()

    def _over(self, status: int, error: JlrError | None) -> None:
        if self._cancelled.is_set():
            return
        if not self._has_reader:
            # What is unsent waits for a window that the client may never open again.
            vars(self._channel).update(_send_buf=[], _send_buf_len=0)
        with suppress(OSError):
            if error is not None:
                end = "\r\n" if self._channel.get_terminal_type() else "\n"
                words = "; ".join(filter(None, (error.message, error.hint)))
                self._channel.write_stderr(f"jlr: {words}{end}".encode("utf-8", "replace"))
            self._channel.write_eof()
            self._channel.exit(status)


def _size(columns: int, rows: int) -> os.terminal_size:
    return os.terminal_size((columns or _NO_SIZE.columns, rows or _NO_SIZE.lines))
