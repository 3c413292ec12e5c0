"""The link's side of the socket: its parts, a thread for each command, the end when unused."""

from __future__ import annotations

import logging
import multiprocessing.connection as sockets
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

from jlremote import __version__
from jlremote.errors import JlrError
from jlremote.jupyter.endpoint import Endpoint, hostname, time_limit_warning
from jlremote.laptop import desktop
from jlremote.link.connection.backoff import Backoff, begin_loop
from jlremote.link.connection.dialer import ConnectionHost, Dialer, HostSide
from jlremote.link.connection.liveness import LaptopChanges, Liveness
from jlremote.link.connection.supervisor import Supervisor
from jlremote.link.forwards.link_forwards import ContainerEvents, Forwards
from jlremote.link.mount_streams import Mounts
from jlremote.link.notices import CellNotices, JobNotices
from jlremote.link.service.conversation import Conversation
from jlremote.link.service.operations import OPERATIONS, Operations
from jlremote.link.ssh_server.ssh_clients import SshClients
from jlremote.link.wire.link_files import LinkFiles
from jlremote.link.wire.protocol import NotProved, OtherVersion
from jlremote.link.wire.states import ForwardKey, State
from jlremote.place.runtimes.place import Place
from jlremote.ssh.connection import Connection
from jlremote.ssh.forward.connection_router import Gateway
from jlremote.ssh.forward.forwarder import TunnelForward

log = logging.getLogger(__name__)

LAST_WORDS_SECONDS = 1.0
# How long a link without connection, forwards and mounts stays after its last command.
USELESS_SECONDS = 1.0
# How long it waits for the first command, which is loading; one that fails then sends none.
UNUSED_SECONDS = 10.0
NO_DESCRIPTORS_PAUSE = 0.2


class LinkServer:
    """Answers commands until the link is no longer needed."""

    def __init__(self, operations: Operations, *, idle_seconds: float) -> None:
        self._operations = operations
        operations.clients.gone = operations.jobs.gone = self._notify
        self._idle_seconds = idle_seconds
        self._changed = threading.Condition()
        self._listeners: list[sockets.Listener] = []
        self._conversations = 0
        self._served = False
        self.ended = False
        self._deaf = threading.Event()

    def serve(self, listener: sockets.Listener, secret: bytes) -> None:
        """Answer commands until the link ends."""
        self.listen(listener, secret)
        with self._changed:
            while not self.ended:
                if not self._changed.wait(self._patience()) and self._patience() is not None:
                    self.ended = True
        for one in self._listeners:
            with suppress(OSError):  # its socket may have been removed
                one.close()
        self._deaf.set()
        with self._changed:  # last answers go out, the one to `shutdown` among them
            self._changed.wait_for(lambda: self._conversations == 0, LAST_WORDS_SECONDS)

    def listen(self, listener: sockets.Listener, secret: bytes) -> None:
        """Accept commands of another listener as well."""
        self._listeners.append(listener)
        threading.Thread(target=self._accept, args=(listener, secret), daemon=True).start()

    def _patience(self) -> float | None:
        parts = self._operations
        held = (parts.forwards, parts.mounts, parts.clients, parts.jobs)
        if self._conversations or any(len(part) for part in held):
            return None
        if not self._served:
            return min(UNUSED_SECONDS, self._idle_seconds)
        if parts.supervisor.condition.state is not State.UP:
            return min(USELESS_SECONDS, self._idle_seconds)
        return self._idle_seconds

    def _accept(self, listener: sockets.Listener, secret: bytes) -> None:
        while not self.ended:
            try:
                with ExitStack() as stack:
                    socket = stack.enter_context(listener.accept())
                    served = threading.Thread(target=self._converse, args=(socket, secret))
                    served.daemon = True
                    served.start()
                    stack.pop_all()
            except Exception as error:
                # The listener was closed, or no descriptor or thread is left.
                detail = None if isinstance(error, OSError) else error
                log.info("a command's connection was not accepted: %r", error, exc_info=detail)
                self._deaf.wait(NO_DESCRIPTORS_PAUSE)

    def _converse(self, socket: sockets.Connection[Any, Any], secret: bytes) -> None:
        conversation = Conversation(socket)
        try:
            # Not in `accept`: a caller that never answers would block all others.
            conversation.greet(secret)
            with self._changed:
                ended = self.ended
                self._served = self._served or not ended
                self._conversations += not ended
                self._changed.notify_all()
            if ended:
                # The command tries again when we hang up; by then it must not find this link.
                self._deaf.wait()
                return
            try:
                self._answer(conversation)
            finally:
                with self._changed:
                    self._conversations -= 1
                    self._changed.notify_all()
        except EOFError:  # as of each command that only looks whether this link runs
            log.debug("a command hung up")
        except (OSError, ValueError, NotProved) as error:
            log.info("a conversation ended early: %r", error)
        except Exception:
            log.exception("a conversation ended early")
        finally:
            conversation.end()

    def _answer(self, conversation: Conversation) -> None:
        request = conversation.request
        conversation.say({"accepted": True})
        try:
            answer = {"result": self._perform(conversation)}
        except JlrError as error:
            answer = error.to_json()
        except OSError as trouble:  # of the machine: no memory, no descriptor, a full disk
            log.exception("`%s` failed", request.get("op"))
            answer = JlrError(f"the link failed: {trouble}").to_json()
        except Exception as bug:
            log.exception("bug in `%s`", request.get("op"))
            answer = {"error": "Bug", "message": f"the link failed: {bug!r}"}
        if not conversation.handed_over:
            conversation.say(answer)

    def _perform(self, conversation: Conversation) -> Any:
        request = conversation.request
        name = str(request.get("op"))
        if name == "shutdown":  # of any version
            return self._shutdown()
        if request.get("version") != __version__:
            raise OtherVersion(
                f"the link was started by jlr {__version__}, and this is jlr"
                f" {request.get('version')}",
                hint=f"`jlr disconnect {self._operations.dialer.host}` ends it; the next command "
                "starts its own, and the forwards come back",
            )
        if request.get("agent"):
            self._operations.dialer.hand_over(request["agent"])
        if name not in OPERATIONS:
            raise ValueError(f"no operation `{name}`")
        return getattr(self._operations, name)(conversation)

    def _shutdown(self) -> bool:
        """Release the local ports before the answer: the person's next command may want them."""
        self.ended = True  # the connection stays for commands that have begun
        for one in list(self._operations.running):
            if one.request["kept"]:  # or the host would keep it, as over a loss
                one.cancelled.set()
        self._operations.forwards.stop()
        self._notify()
        return True

    def _notify(self) -> None:
        with self._changed:
            self._changed.notify_all()


@contextmanager
def assemble(files: LinkFiles, folder: Path, *, idle_seconds: float) -> Iterator[LinkServer]:
    """Yield the server of a link whose parts run; leaving stops them."""
    dialer = Dialer(files, folder)
    laptop_changes = LaptopChanges()  # used by the supervisor's thread only
    host_side = HostSide(files.host)

    def came_up(connection: Connection) -> None:
        mounts.came_up()
        host_side.renew(connection)
        forwards.prove_all(connection)

    supervisor = Supervisor(
        dialer.dial,
        wanted=lambda: len(forwards) + len(mounts) + len(clients) + len(jobs) > 0,
        on_up=came_up,
        liveness=Liveness(lambda: dialer.probing, laptop_changes.changed),
        backoff=Backoff(laptop_changes.changed),
    )

    def find(connection: Connection, known: Endpoint) -> Endpoint:
        from jlremote.jupyter.locate import locate  # loaded while the login goes on

        return locate(ConnectionHost(files.host, connection), known)

    def listen(local_port: int, gateway: Gateway, key: ForwardKey) -> TunnelForward:
        return TunnelForward(local_port, gateway, hostname(files.host, *key))

    def ending(session: str, until: float) -> None:
        if text := time_limit_warning(files.host, session, until):
            show(session, text)

    def show(session: str, text: str) -> None:
        desktop.shown(f"{files.host}/{session}", text)

    def place_of(session: str) -> Place | None:
        forward = forwards.find((session, None))
        return None if forward is None else forward.endpoint.place

    events = ContainerEvents(lambda *event: forwards.changed(*event))
    forwards = Forwards(supervisor, find, listen, events.observe, ending)
    mounts = Mounts(supervisor, files.mount_socket)
    clients = SshClients(supervisor)
    jobs = JobNotices(
        lambda timeout: ConnectionHost(files.host, supervisor.wait(timeout)), desktop.shown
    )
    cells = CellNotices(supervisor.wait, place_of, show)
    operations = Operations(supervisor, forwards, mounts, clients, jobs, cells, dialer)
    supervisor.start()
    begin_loop("time limits", forwards.heed_limits)
    try:
        yield LinkServer(operations, idle_seconds=idle_seconds)
    finally:
        supervisor.end()  # first: closing the connection ends threads that write to it
        for part in (forwards, mounts, clients, jobs, cells):
            part.stop()
