"""Requests to the link, the questions that it asks meanwhile, and the link's search and start."""

from __future__ import annotations

import json
import socket as plain_sockets
import struct
import sys
import threading
import time
from collections.abc import Callable, Generator, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from jlremote import __version__
from jlremote.errors import Bug, JlrError, LinkLost, Unreachable, from_json
from jlremote.link.wire import protocol
from jlremote.link.wire.link_files import LinkFiles
from jlremote.link.wire.protocol import Message, is_there, receive, send
from jlremote.questions import Asker, Question

if TYPE_CHECKING:
    import subprocess

    from jlremote.link.wire.protocol import Socket

TRIES = 5
# A script ends as soon as it is told to, unless the host is out of reach.
END_SECONDS = 2.0
UNENDED = "interrupted; `{}` has not said that the script there ended: some of it may be left"
_ENDS = frozenset(("error", "result"))  # the last message has one of these
# After so many seconds without an answer the link is asked whether the host answers at all; with
# the time that it takes for that, a person is told after three.
UNANSWERED_SECONDS = 2.0
ANSWER_SECONDS = 10.0
# A new link loads libraries first: a scanner of Windows, or a slow disk, may take long over them.
LOADING_SECONDS = 60.0
# How long a link may say nothing before it is asked whether it still runs.
SILENCE_SECONDS = 2.0
# ERROR_SEM_TIMEOUT and ERROR_PIPE_BUSY: a link that still loads has room for one caller.
_PIPE_BUSY = (121, 231)
TURN_SECONDS = 0.01

Explain = Callable[[JlrError], JlrError]
# Shows a title while a `with` block waits (see `Progress.waiting`).
Waiting = Callable[..., AbstractContextManager[None]]


class NoLink(JlrError):
    """No link runs for this host."""


class LinkStuck(JlrError):
    """A link runs for this host, but does not answer."""


@dataclass
class Caller:
    """Sends requests to the link of one host, and starts the link if none runs.

    The link may use the SSH agent at `agent_socket`; `restore` restores what the last link held.
    `explain` returns the error to raise for one that the link reports; `unanswered` is called where
    the host may not answer; `waiting` shows what a request waits for.
    """

    files: LinkFiles
    asker: Asker
    agent_socket: str | None
    restore: Callable[[], None]
    explain: Explain = lambda error: error
    unanswered: Callable[[], None] = lambda: None
    waiting: Waiting = lambda *_, **__: nullcontext()
    restores: bool = True  # what the last link held, which takes a connection

    def ask(self, operation: str, *, start: bool = True, **arguments: Any) -> Any:
        """Return the result of an operation (see `call`), or raise what the link reports."""
        with self.call(operation, start=start, **arguments) as call:
            for message in call.messages():
                if "result" in message:
                    return message["result"]
        raise Bug(f"the link did not answer `{operation}`")

    @contextmanager
    def call(self, operation: str, *, start: bool = True, **arguments: Any) -> Iterator[Call]:
        """Begin an operation of the link; leaving the block hangs up.

        Raise `NoLink` if none runs, and none was to be started.
        """
        request = {"op": operation, "version": __version__, "agent": self.agent_socket, **arguments}
        with ExitStack() as shown:
            if start:  # else the link itself answers, at once
                new = not self.files.key.exists() or self.files.restoring.exists()
                shown.enter_context(self.waiting(f"Connect to {self.files.host}", long=new))
            with self._accepted(request, start=start) as socket:
                call = Call(socket, self, request, shown)
                try:
                    yield call
                except (KeyboardInterrupt, SystemExit) as ending:
                    if not call.end_script() and isinstance(ending, KeyboardInterrupt):
                        ending.args = ending.args or (UNENDED.format(self.files.host),)
                    raise

    def _accepted(self, request: Message, *, start: bool) -> Socket:
        """Return the socket of a link that has accepted the request.

        A link may end, because it is idle, between our connecting and its answer. Until it has
        accepted the request, the request can be sent to the next link.
        """
        for _ in range(TRIES):
            try:
                socket = self._dial(start=start)
            except NoLink:
                if not start:
                    raise
                continue
            with ExitStack() as stack, suppress(EOFError, OSError):
                stack.callback(socket.close)
                send(socket, request)
                if "accepted" in next_message(socket, self.files):
                    stack.pop_all()
                    return socket
        text = f"the link to `{self.files.host}` ends as soon as it is used"
        raise Bug(text, hint=f"its log is {self.files.log}")

    def _dial(self, *, start: bool) -> Socket:
        try:
            socket = dial(self.files)
        except NoLink:
            if not start:
                raise
            if getattr(self.asker, "obeys", False) and self.files.disconnected.exists():
                raise Unreachable("disconnected by `jlr disconnect`") from None
            start_link(self.files)
            socket = dial(self.files)
        if not (start and self.restores and self.files.restoring.exists()):
            return socket
        socket.close()
        self._bring_back()
        return dial(self.files)

    def _bring_back(self) -> None:
        """Restore what the last link held, or wait for the command that does.

        That comes first even for a command that found the new link running: its request may be
        about a forward that is still to be restored. Connecting needs no lock.
        """
        self.restores = False
        try:
            self.ask("status", connect=True)
            with turn(self.files):
                if self.files.restoring.exists():
                    self.restore()
                    self.files.restoring.unlink(missing_ok=True)
        finally:
            self.restores = True


class Call:
    """A request that the link has accepted; `on_silence` is that of `next_message`."""

    def __init__(self, socket: Socket, caller: Caller, request: Message, shown: ExitStack) -> None:
        self.on_silence: Callable[[], None] = lambda: None
        self._socket = socket
        self._caller = caller
        self._runs_script = False
        self._is_answered = request["op"] == "answers"
        self._shown = shown  # what the request waits for
        self._in_terminal = bool(request.get("terminal"))
        self._saying = threading.Lock()

    def messages(self) -> Generator[Message]:
        """Yield the link's messages up to the result, and answer its questions in between.

        Raise the `JlrError` that the link reports, and `LinkLost` when it breaks off.
        """
        while True:
            try:
                if not (self._is_answered or is_there(self._socket, UNANSWERED_SECONDS)):
                    self._caller.unanswered()
                message = next_message(self._socket, self._caller.files, self.on_silence)
            except (EOFError, OSError) as gone:
                files = self._caller.files
                text = f"the link to `{files.host}` ended before it answered"
                raise LinkLost(text, hint=f"try again; its log is {files.log}") from gone
            if "connected" in message:
                self._runs_script = True  # before the link may begin it
                self.say({"begin": True})
            self._is_answered = "connected" not in message
            self._shown.close()
            if "ask" in message:
                with suppress(OSError):  # it may have given up waiting, as its next message says
                    send(self._socket, self._reply(message))
                self._wait("Connect to")
                continue
            if "connected" in message and not self._in_terminal:  # which has words of its own
                self._wait("Wait for")
            if not _ENDS.isdisjoint(message):
                self._runs_script = False
            if "error" in message:
                raise self._caller.explain(from_json(message))
            yield message
            if "result" in message:
                return

    def _wait(self, what: str) -> None:
        title = f"{what} {self._caller.files.host}"
        self._shown.enter_context(self._caller.waiting(title, long=False))

    def say(self, message: Message) -> None:
        """Send one message; after a failure the link's next message tells the reason."""
        with suppress(OSError), self._saying:
            send(self._socket, message)

    def take_over(self) -> plain_sockets.socket:
        """Return the socket, which carries another protocol after the result."""
        return protocol.plain_socket(self._socket)

    def end_script(self) -> bool:
        """End a script that was let begin, before rollback runs; return whether it has ended."""
        if self._runs_script:
            self.say({"end": True})
            with suppress(EOFError, OSError, ValueError):
                while self._runs_script and is_there(self._socket, END_SECONDS):
                    self._runs_script = _ENDS.isdisjoint(receive(self._socket))
        return not self._runs_script

    def _reply(self, message: Message) -> Message:
        question = Question(message["ask"], message["text"], echo=message["echo"])
        try:
            return {"answer": self._caller.asker.ask(question)}
        except JlrError as declined:
            return {"declined": declined.to_json()}


def dial(files: LinkFiles) -> Socket:
    """Connect to the link; raise `NoLink` if none runs, `LinkStuck` if it does not answer."""
    try:
        secret = files.key.read_bytes()
        socket = _connected(files.address(secret))
    except OSError as missing:
        raise NoLink(f"no link to `{files.host}` runs") from missing
    try:
        _wait_for_challenge(socket, files)
        protocol.authenticate_link(socket, secret)
    except (OSError, EOFError, protocol.NotProved) as leaving:
        socket.close()
        raise NoLink(f"the link to `{files.host}` is ending") from leaving
    except BaseException:
        socket.close()
        raise
    return socket


def _connected(address: str) -> Socket:
    if sys.platform == "win32":
        import multiprocessing.connection as sockets

        limit = time.monotonic() + LOADING_SECONDS
        while True:
            try:
                return sockets.Client(address)  # type: ignore[return-value]  # has the same methods
            except OSError as busy:
                if busy.winerror not in _PIPE_BUSY or time.monotonic() > limit:
                    raise
    socket = plain_sockets.socket(plain_sockets.AF_UNIX)
    try:
        socket.connect(address)
    except BaseException:
        socket.close()
        raise
    return socket


def next_message(
    socket: Socket, files: LinkFiles, on_silence: Callable[[], None] = lambda: None
) -> Message:
    """Return the link's next message, and check while it waits that the link answers others.

    `on_silence` is called each time that the link has been found to run and still said nothing; an
    exception from it is passed on. Raise `LinkStuck` if the link does not answer, as one whose
    process is suspended; for other errors see `receive`.
    """
    while not is_there(socket, SILENCE_SECONDS):
        with suppress(NoLink):  # it is ending, and its last message may be under way
            dial(files).close()
        on_silence()
    return receive(socket)


def _wait_for_challenge(socket: Socket, files: LinkFiles) -> None:
    """Wait for the link's first message; a suspended process accepts and says nothing."""
    is_new = files.restoring.exists()  # no command has been served yet
    if is_there(socket, LOADING_SECONDS if is_new else ANSWER_SECONDS):
        return
    text, pid = f"the link to `{files.host}` does not answer", 0
    if sys.platform == "linux":
        assert isinstance(socket, plain_sockets.socket)
        pid, _user, _group = struct.unpack(
            "3i", socket.getsockopt(plain_sockets.SOL_SOCKET, plain_sockets.SO_PEERCRED, 12)
        )
    if not pid:  # it is in another namespace
        raise LinkStuck(text)
    resume = f"`kill -CONT {pid}` resumes it if it is suspended"
    end = f"else `kill -KILL {pid}`, and the next command brings its forwards back"
    raise LinkStuck(f"{text}; its process is {pid}", hint=f"{resume}; {end}")


def start_link(files: LinkFiles, begun: Callable[[], None] = lambda: None) -> None:
    """Start the link, unless another command just did, and wait until it listens.

    `begun` is called once its process has begun, before that has loaded.
    """
    with turn(files):
        try:
            dial(files).close()
        except NoLink:
            files.restoring.touch(mode=0o600)
            files.write_destination()
            files.disconnected.unlink(missing_ok=True)
            config = () if files.config is None else (files.config,)
            process = begin("jlremote.link", files.host, *config, log=files.log, pipe=True)
            begun()
            assert process.stdout is not None
            with process.stdout as pipe:
                said = pipe.readline()
            if said.startswith(b"{"):
                process.wait()
                raise from_json(json.loads(said)) from None
            if said != protocol.READY:
                text = f"the link to `{files.host}` did not start (exit status {process.wait()})"
                raise Bug(text, hint=f"its log is {files.log}") from None
            process.returncode = 0  # no need to wait for it: it outlives the command


def turn(files: LinkFiles) -> AbstractContextManager[object]:
    """Return a lock that one thread of one command can hold at a time."""
    from filelock import FileLock  # as `subprocess`

    return FileLock(files.starting, mode=0o600, poll_interval=TURN_SECONDS)


def begin(*words: str, log: Path, pipe: bool = False, **how: Any) -> subprocess.Popen[bytes]:
    """Begin a module, with its arguments, as a process that outlives the terminal."""
    import subprocess  # not needed while a link lives

    # -P: modules in the current folder must not be imported in place of ours.
    # gil: the link's threads, and paramiko's, need the lock that a free-threaded Python leaves out;
    # Python before 3.13 has always one, and ignores the option.
    command = (sys.executable, "-P", "-X", "gil=1", "-m", *words)
    with log.open("ab") as said:
        how |= {"stdout": subprocess.PIPE if pipe else said, "stderr": said, **detached()}
        return subprocess.Popen(command, stdin=subprocess.DEVNULL, **how)


def detached() -> dict[str, Any]:
    """Return how `Popen` starts a process that outlives the terminal."""
    if sys.platform == "win32":
        import subprocess

        # Its programs share its console, which has no window; without one each would open a window.
        flags = subprocess.CREATE_NO_WINDOW | subprocess.CREATE_NEW_PROCESS_GROUP
        return {"creationflags": flags}
    return {"start_new_session": True}
