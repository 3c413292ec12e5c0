"""The link's side of the socket: one thread per conversation, one method per request."""

from __future__ import annotations

import contextlib
import logging
import multiprocessing.connection as sockets
import threading
from collections.abc import Callable
from multiprocessing import AuthenticationError
from typing import Any

from jlremote import __version__
from jlremote.errors import JlrError, NeedsAuthentication, from_json
from jlremote.jupyter.server import endpoint_from_json
from jlremote.link.forwards import Forwards
from jlremote.link.protocol import PROTOCOL, bytes_of, receive, send, text_of
from jlremote.link.supervisor import Supervisor
from jlremote.questions import Question
from jlremote.ssh.contract import Stream

log = logging.getLogger(__name__)

Message = dict[str, Any]
LAST_WORDS_SECONDS = 1.0


class Conversation:
    """One command at the other end; also the person behind it, who can be asked."""

    def __init__(self, socket: sockets.Connection[Any, Any], request: Message) -> None:
        self.request = request
        self._socket = socket
        self._sending = threading.Lock()

    def say(self, message: Message) -> None:
        """Send one message."""
        with self._sending:
            send(self._socket, message)

    def ask(self, question: Question) -> str:
        """Put a question to the person at the command."""
        try:
            self.say({"ask": question.kind, "text": question.text, "echo": question.echo})
            reply = receive(self._socket)
        except (OSError, EOFError) as gone:
            raise NeedsAuthentication("the command that was asked has gone") from gone
        if "answer" not in reply:
            raise from_json(reply.get("declined") or {})
        return str(reply["answer"])

    def when_gone(self, then: Callable[[], None]) -> None:
        """Call `then` once the command hangs up; it can be asked nothing afterwards."""
        threading.Thread(target=self._wait_for_hang_up, args=(then,), daemon=True).start()

    def _wait_for_hang_up(self, then: Callable[[], None]) -> None:
        with contextlib.suppress(OSError, EOFError, ValueError):
            receive(self._socket)
        then()


class LinkServer:
    """Answers commands until nobody needs the link any more."""

    def __init__(
        self,
        supervisor: Supervisor,
        forwards: Forwards,
        *,
        idle_seconds: float,
        hand_over: Callable[[str], None],
    ) -> None:
        self._supervisor = supervisor
        self._forwards = forwards
        self._idle_seconds = idle_seconds
        self._hand_over = hand_over
        self._changed = threading.Condition()
        self._conversations = 0
        self._ended = False
        self._operations: dict[str, Callable[[Conversation], Any]] = {
            "run": self._run,
            "forward": self._forward,
            "unforward": self._unforward,
            "status": self._status,
            "watch": self._watch,
            "shutdown": self._shutdown,
        }

    def serve(self, listener: sockets.Listener, secret: bytes) -> None:
        """Accept conversations until the link ends."""
        threading.Thread(target=self._accept, args=(listener, secret), daemon=True).start()
        self._wait_for_the_end()

    def _accept(self, listener: sockets.Listener, secret: bytes) -> None:
        while True:
            try:
                socket = listener.accept()
            except OSError:
                return
            threading.Thread(target=self._converse, args=(socket, secret), daemon=True).start()

    def _wait_for_the_end(self) -> None:
        """Return when asked to, or when nothing has needed the link for a while."""
        with self._changed:
            while not self._ended:
                idle = self._conversations == 0 and len(self._forwards) == 0
                if not self._changed.wait(self._idle_seconds if idle else None) and idle:
                    self._ended = True
            # Last answers go out, the one to `shutdown` among them.
            self._changed.wait_for(lambda: self._conversations == 0, LAST_WORDS_SECONDS)

    def _converse(self, socket: sockets.Connection[Any, Any], secret: bytes) -> None:
        with self._changed:
            self._conversations += 1
            self._changed.notify_all()
        try:
            # Not in `accept`: a caller that never answers would keep everybody else out.
            sockets.deliver_challenge(socket, secret)
            sockets.answer_challenge(socket, secret)
            self._answer(Conversation(socket, receive(socket)))
        except (OSError, EOFError, ValueError, AuthenticationError) as error:
            log.info("a conversation ended early: %r", error)
        finally:
            socket.close()
            with self._changed:
                self._conversations -= 1
                self._changed.notify_all()

    def _answer(self, conversation: Conversation) -> None:
        request = conversation.request
        if _version(request.get("version", "")) > _version(__version__):
            log.info("leaving for version %s", request["version"])
            conversation.say({"replace": __version__})
            self._end()
            return
        conversation.say({"accepted": True})
        try:
            conversation.say({"result": self._perform(conversation)})
        except JlrError as error:
            conversation.say(error.to_json())
        except (OSError, EOFError):
            raise
        except Exception as bug:
            log.exception("bug in `%s`", request.get("op"))
            conversation.say({"error": "Bug", "message": f"the link failed: {bug!r}"})

    def _perform(self, conversation: Conversation) -> Any:
        request = conversation.request
        operation = self._operations.get(str(request.get("op")))
        if operation is None or request.get("protocol") != PROTOCOL:
            raise JlrError(
                f"the link of this host speaks jlr {__version__}, this is another one",
                hint="`jlr disconnect HOST` ends the link; the next command starts its own",
            )
        if request.get("agent"):
            self._hand_over(request["agent"])
        return operation(conversation)

    def _run(self, conversation: Conversation) -> int:
        """Run a script and pass its output on as it comes; the result is its exit status."""
        request = conversation.request
        connection = self._supervisor.connection(conversation)
        cancelled = threading.Event()
        conversation.when_gone(cancelled.set)

        def pass_on(stream: Stream, data: bytes) -> None:
            try:
                conversation.say({"stream": stream, "data": text_of(data)})
            except OSError:
                cancelled.set()

        try:
            return connection.execute(
                bytes_of(request["script"]),
                pass_on,
                timeout=request.get("timeout"),
                cancelled=cancelled,
            )
        except TimeoutError as late:
            raise JlrError(
                f"the host did not finish within {request.get('timeout'):g} s",
                hint="it may be under load; look there with `ssh`",
            ) from late

    def _forward(self, conversation: Conversation) -> Message:
        request = conversation.request
        connection = self._supervisor.connection(conversation)
        endpoint = endpoint_from_json(request["endpoint"])
        forward = self._forwards.add(request["name"], request["local_port"], endpoint, connection)
        return forward.to_json()

    def _unforward(self, conversation: Conversation) -> bool:
        removed = self._forwards.remove(conversation.request["name"])
        self._notify()
        return removed

    def _status(self, conversation: Conversation) -> Message:
        if conversation.request.get("connect"):
            self._supervisor.connection(conversation)
        condition = self._supervisor.condition.to_json()
        return condition | {"version": __version__, "forwards": self._forwards.to_json()}

    def _watch(self, conversation: Conversation) -> bool:
        """Answer once the named forward is gone, or the command is."""
        gone = threading.Event()

        def hung_up() -> None:
            gone.set()
            self._notify()

        conversation.when_gone(hung_up)
        name = conversation.request["name"]
        with self._changed:
            self._changed.wait_for(
                lambda: name not in self._forwards or gone.is_set() or self._ended
            )
        return True

    def _shutdown(self, _: Conversation) -> bool:
        self._end()
        return True

    def _end(self) -> None:
        self._ended = True
        self._notify()

    def _notify(self) -> None:
        with self._changed:
            self._changed.notify_all()


def _version(text: str) -> tuple[int, ...]:
    return tuple(int(part) for part in text.split(".") if part.isdigit())
