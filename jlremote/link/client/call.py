"""A request to the link: brought to it, and answered; meanwhile the link may ask the person."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager, suppress
from typing import Any

from jlremote import __version__
from jlremote.errors import Bug, JlrError, LinkLost, from_json
from jlremote.link.client.dial import NoLink, Socket, dial, start_link, turn
from jlremote.link.wire.files import LinkFiles
from jlremote.link.wire.protocol import PROTOCOL, receive, send
from jlremote.questions import Asker, Question

Message = dict[str, Any]
TRIES = 5
# A script has ended as soon as it was told so, unless the host is not reached any more.
END_SECONDS = 2.0


class Call:
    """A request that the link has accepted, and the person who can be asked about it."""

    def __init__(self, socket: Socket, files: LinkFiles, asker: Asker) -> None:
        self._socket = socket
        self._files = files
        self._asker = asker
        self._runs_script = False

    def messages(self) -> Generator[Message]:
        """Give the link's messages up to the result, answering its questions in between.

        Raises:
            JlrError: what the link reports; `LinkLost` when it breaks off.
        """
        while True:
            try:
                message = receive(self._socket)
            except (EOFError, OSError) as gone:
                raise LinkLost(
                    f"the link to `{self._files.host}` ended in the middle of its answer",
                    hint=f"try again; its log is {self._files.log}",
                ) from gone
            except (KeyboardInterrupt, SystemExit):
                self._end_script()
                raise
            self._runs_script = self._runs_script or "connected" in message
            if "ask" in message:
                with suppress(OSError):  # it may have given up waiting, and says so
                    send(self._socket, self._reply(message))
                continue
            if "error" in message:
                raise from_json(message)
            yield message
            if "result" in message:
                return

    def say(self, message: Message) -> None:
        """Send one message; where that cannot be, the link's next one tells why."""
        with suppress(OSError):
            send(self._socket, message)

    def _end_script(self) -> None:
        """Have the script end, and wait for that: what is to be undone must not be still done."""
        if not self._runs_script:
            return
        with suppress(EOFError, OSError, ValueError):
            send(self._socket, {"end": True})
            while self._socket.poll(END_SECONDS):
                if not {"error", "result"}.isdisjoint(receive(self._socket)):
                    return

    def _reply(self, message: Message) -> Message:
        question = Question(message["ask"], message["text"], echo=message["echo"])
        try:
            return {"answer": self._asker.ask(question)}
        except JlrError as declined:
            return {"declined": declined.to_json()}


class Caller:
    """Makes requests of the link to one host, and starts it where it is needed.

    Args:
        files: the link's.
        asker: who answers its questions.
        agent_socket: the command's SSH agent, for the link to use.
        restore: brings back what the last link had.
    """

    def __init__(
        self,
        files: LinkFiles,
        asker: Asker,
        agent_socket: str | None,
        restore: Callable[[], None],
    ) -> None:
        self._files = files
        self._asker = asker
        self._agent_socket = agent_socket
        self._restore = restore
        self._restoring = False

    def ask(self, operation: str, *, start: bool = True, **arguments: Any) -> Any:
        """Return the result of an operation.

        Raises:
            NoLink: no link runs, and none was to be started.
            JlrError: what the link reports.
        """
        with self.call(operation, start=start, **arguments) as call:
            for message in call.messages():
                if "result" in message:
                    return message["result"]
        raise Bug(f"the link did not answer `{operation}`")

    @contextmanager
    def call(self, operation: str, *, start: bool = True, **arguments: Any) -> Iterator[Call]:
        """Have the link begin an operation; leaving hangs up.

        Raises:
            NoLink: no link runs, and none was to be started.
        """
        request = {
            "op": operation,
            "version": __version__,
            "protocol": PROTOCOL,
            "agent": self._agent_socket,
        } | arguments
        with self._accepted(request, start=start) as socket:
            yield Call(socket, self._files, self._asker)

    def _accepted(self, request: Message, *, start: bool) -> Socket:
        """Return a socket to a link that has accepted the request.

        A link may leave, for its age or for want of work, between our connecting and its answer;
        as long as it has not accepted, the request can be sent to the next one.
        """
        for _ in range(TRIES):
            try:
                socket = self._dial(start=start)
            except NoLink:
                if not start:
                    raise
                continue
            try:
                send(socket, request)
                if "accepted" in receive(socket):
                    return socket
            except (EOFError, OSError):
                pass
            socket.close()
        raise Bug(
            f"the link to `{self._files.host}` leaves whenever it is called; see {self._files.log}"
        )

    def _dial(self, *, start: bool) -> Socket:
        try:
            socket = dial(self._files)
        except NoLink:
            if not start:
                raise
            start_link(self._files)
            socket = dial(self._files)
        if not start or self._restoring or not self._files.restoring.exists():
            return socket
        socket.close()
        self._bring_back()
        return dial(self._files)

    def _bring_back(self) -> None:
        """Bring back what the last link had, unless somebody else does; then wait for that.

        It comes first even for a command that found the new link running, for what it asks may be
        about what is still to come back. To connect is nobody's turn: the link does that once.
        """
        self._restoring = True
        try:
            self.ask("status", connect=True)
            with turn(self._files):
                if self._files.restoring.exists():
                    self._restore()
                    self._files.restoring.unlink(missing_ok=True)
        finally:
            self._restoring = False
