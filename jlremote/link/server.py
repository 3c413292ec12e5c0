"""The link's side of the socket: one thread per conversation, one method per request."""

from __future__ import annotations

import logging
import multiprocessing.connection as sockets
import threading
from collections.abc import Callable
from multiprocessing import AuthenticationError
from typing import Any, Protocol

from jlremote import __version__
from jlremote.errors import JlrError
from jlremote.jupyter.server import Endpoint, endpoint_from_json
from jlremote.link.conversation import Conversation, Message
from jlremote.link.forwards import Forwards
from jlremote.link.mounts import Mounts
from jlremote.link.protocol import PROTOCOL
from jlremote.link.running import run
from jlremote.link.states import State
from jlremote.link.status import leads_to_a_server
from jlremote.link.supervisor import Supervisor
from jlremote.ports.endpoint import PortEndpoint, port_endpoint_from_json

log = logging.getLogger(__name__)

LAST_WORDS_SECONDS = 1.0
# How long a link stays that has neither a connection nor anything to keep, after its last command.
USELESS_SECONDS = 1.0
NO_DESCRIPTORS_PAUSE = 0.2
# How long a command waits to be told what is behind a forward.
PROOF_SECONDS = 10.0


class Login(Protocol):
    """How the link logs in."""

    @property
    def notes(self) -> tuple[str, ...]:
        """What the user's settings ask for that jlr does not do, a sentence each."""
        ...

    def hand_over(self, agent_socket: str) -> None:
        """Take the SSH agent of the latest command."""
        ...

    def forget(self) -> tuple[str, ...]:
        """Forget what the keychain holds for the host; return what that was."""
        ...


class LinkServer:
    """Answers commands until nobody needs the link any more."""

    def __init__(
        self,
        supervisor: Supervisor,
        forwards: Forwards,
        mounts: Mounts,
        login: Login,
        *,
        idle_seconds: float,
    ) -> None:
        self._supervisor = supervisor
        self._forwards = forwards
        self._mounts = mounts
        self._idle_seconds = idle_seconds
        self._login = login
        self._changed = threading.Condition()
        self._conversations = 0
        self._served = False
        self._ended = False
        self._deaf = threading.Event()
        self._operations: dict[str, Callable[[Conversation], Any]] = {
            "run": self._run,
            "forward": self._forward,
            "unforward": self._unforward,
            "check": self._check,
            "permits": self._permits,
            "mount": self._mount,
            "unmount": self._unmount,
            "status": self._status,
            "forget": self._forget,
            "watch": self._watch,
            "shutdown": self._shutdown,
        }

    def serve(self, listener: sockets.Listener, secret: bytes) -> None:
        """Accept conversations until the link ends; then nobody can reach it any more."""
        threading.Thread(target=self._accept, args=(listener, secret), daemon=True).start()
        with self._changed:
            while not self._ended:
                if not self._changed.wait(self._patience()) and self._patience() is not None:
                    self._ended = True
        listener.close()
        self._deaf.set()
        with self._changed:  # last answers go out, the one to `shutdown` among them
            self._changed.wait_for(lambda: self._conversations == 0, LAST_WORDS_SECONDS)

    def _patience(self) -> float | None:
        """Return the seconds after which the link leaves, `None` as long as it is needed."""
        if self._conversations or len(self._forwards) or len(self._mounts):
            return None
        if self._served and self._supervisor.condition.state is not State.UP:
            return min(USELESS_SECONDS, self._idle_seconds)
        return self._idle_seconds

    def _accept(self, listener: sockets.Listener, secret: bytes) -> None:
        while not self._ended:
            try:
                socket = listener.accept()
            except OSError as error:  # the listener was closed, or no descriptor is left
                log.info("no conversation was accepted: %r", error)
                self._deaf.wait(NO_DESCRIPTORS_PAUSE)
                continue
            threading.Thread(target=self._converse, args=(socket, secret), daemon=True).start()

    def _converse(self, socket: sockets.Connection[Any, Any], secret: bytes) -> None:
        conversation = Conversation(socket)
        try:
            # Not in `accept`: a caller that never answers would keep everybody else out.
            conversation.greet(secret)
            if self._begin():
                try:
                    self._answer(conversation)
                finally:
                    self._finish()
            else:
                # The command tries again when we hang up; by then it must not find us any more.
                self._deaf.wait()
        except (OSError, EOFError, ValueError, AuthenticationError) as error:
            log.info("a conversation ended early: %r", error)
        finally:
            conversation.end()

    def _begin(self) -> bool:
        """Count a conversation, unless the link is leaving; return whether it is counted."""
        with self._changed:
            if self._ended:
                return False
            self._served = True
            self._conversations += 1
            self._changed.notify_all()
            return True

    def _finish(self) -> None:
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
        # Whoever cannot talk to us must at least be able to get rid of us.
        understood = request.get("protocol") == PROTOCOL or operation == self._shutdown
        if operation is None or not understood:
            raise JlrError(
                f"the link was started by jlr {__version__}, and this is jlr "
                f"{request.get('version')}, which is too old for it",
                hint="update this one; or `jlr disconnect HOST`, and then it starts its own",
            )
        if request.get("agent"):
            self._login.hand_over(request["agent"])
        return operation(conversation)

    def _run(self, conversation: Conversation) -> int:
        return run(conversation, self._supervisor.connection(conversation))

    def _forward(self, conversation: Conversation) -> Message:
        request = conversation.request
        connection = self._supervisor.connection(conversation)
        endpoint = _endpoint(request)
        forward = self._forwards.add(request["name"], request["local_port"], endpoint, connection)
        forward.settled(PROOF_SECONDS)
        return forward.to_json(self._supervisor.condition)

    def _check(self, conversation: Conversation) -> Message | None:
        """Prove a forward anew, whatever is known of it."""
        connection = self._supervisor.connection(conversation)
        forward = self._forwards.find(conversation.request["name"])
        if forward is None:
            return None
        forward.prove_again(connection)
        forward.settled(PROOF_SECONDS)
        return forward.to_json(self._supervisor.condition)

    def _permits(self, conversation: Conversation) -> str | None:
        request = conversation.request
        connection = self._supervisor.connection(conversation)
        return connection.refusal(request["address"], request["port"], PROOF_SECONDS)

    def _unforward(self, conversation: Conversation) -> bool:
        removed = self._forwards.remove(conversation.request["name"])
        self._notify()
        return removed

    def _mount(self, conversation: Conversation) -> bool:
        self._supervisor.connection(conversation)
        self._mounts.add(conversation.request["name"])
        return True

    def _unmount(self, conversation: Conversation) -> bool:
        removed = self._mounts.remove(conversation.request["name"])
        self._notify()
        return removed

    def _status(self, conversation: Conversation) -> Message:
        if conversation.request.get("connect"):
            self._supervisor.connection(conversation)
        condition = self._supervisor.condition
        held = {"forwards": self._forwards.to_json(condition), "mounts": self._mounts.to_json()}
        facts = {"version": __version__, "notes": self._login.notes}
        return condition.to_json() | facts | held

    def _forget(self, _: Conversation) -> tuple[str, ...]:
        return self._login.forget()

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


def _endpoint(message: Message) -> Endpoint | PortEndpoint:
    read = endpoint_from_json if leads_to_a_server(message) else port_endpoint_from_json
    return read(message["endpoint"])


def _version(text: str) -> tuple[int, ...]:
    return tuple(int(part) for part in text.split(".") if part.isdigit())
