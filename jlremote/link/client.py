"""The command's side of the socket. Never imports the SSH room: that is what makes it fast."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from jlremote import __version__
from jlremote.errors import Bug, JlrError, LinkLost, from_json
from jlremote.host.collect import run_steps
from jlremote.host.script import Completed, Steps, announced, new_marker
from jlremote.host.shell import OUTPUT_BYTES, SCRIPT_SECONDS
from jlremote.jupyter.server import Endpoint
from jlremote.link.dial import NoLink, Socket, dial, start_link, turn
from jlremote.link.files import link_files
from jlremote.link.protocol import PROTOCOL, bytes_of, receive, send
from jlremote.link.remote_output import RemoteOutput
from jlremote.link.remote_process import RemoteProcess, Terminal
from jlremote.link.status import (
    ForwardStatus,
    LinkStatus,
    PortStatus,
    forward_status,
    link_status,
    port_status,
)
from jlremote.ports.endpoint import PortEndpoint, port_name
from jlremote.questions import Asker, Question

Message = dict[str, Any]
TRIES = 5


class Link:
    """The link to one host, as a command uses it; starts it when it is needed.

    It is a `StreamingHost`: scripts run over the link's connection.
    """

    def __init__(
        self,
        host: str,
        ssh_config: Path | None,
        asker: Asker,
        *,
        agent_socket: str | None = None,
        on_command: Callable[[str], None] = lambda _: None,
        on_start: Callable[[Link], None] = lambda _: None,
    ) -> None:
        self.name = host
        self._files = link_files(host, ssh_config)
        self._asker = asker
        self._agent_socket = agent_socket
        self._on_command = on_command
        self._on_start = on_start
        self._restoring = False

    def run(
        self, steps: Steps, *, timeout: float = SCRIPT_SECONDS, limit: int = OUTPUT_BYTES
    ) -> dict[str, Completed]:
        """Run `steps` on the host (see `Host.run`)."""
        for text in steps.values():
            self._on_command(text)

        def execute(script: str, output: Callable[[str, bytes], None]) -> None:
            with self._conversation("run", script=script, timeout=timeout) as socket:
                for message in self._messages(socket):
                    if "stream" in message:
                        output(message["stream"], bytes_of(message["data"]))

        return run_steps(steps, limit, execute)

    @contextmanager
    def stream(
        self, script: str, given: Iterable[bytes] = (), *, end: bool = False
    ) -> Iterator[RemoteOutput]:
        """Run `script` and give its output as it comes; leaving ends it (see `StreamingHost`)."""
        self._on_command(script)
        marker = new_marker()
        request: Message = {"script": announced(script, marker), "hold_stdin": not end}
        with self._conversation("run", timeout=None, gives=True, **request) as socket:

            def say(message: Message) -> None:
                with suppress(OSError):  # the next message tells why
                    send(socket, message)

            yield RemoteOutput(self._messages(socket), marker, given, say)

    @contextmanager
    def process(self, script: str, terminal: Terminal | None = None) -> Iterator[RemoteProcess]:
        """Run `script` with bytes both ways; leaving ends it.

        Args:
            script: POSIX sh, which asks its stdin for what it is given.
            terminal: the one that it is to run in, `None` for none.
        """
        self._on_command(script)
        marker = None if terminal else new_marker()
        request: Message = {"script": announced(script, marker) if marker else script}
        if terminal:
            request["terminal"] = {"kind": terminal.kind, "size": terminal.size}
        with self._conversation("run", timeout=None, gives=True, **request) as socket:

            def say(message: Message) -> None:
                with suppress(OSError):  # the next message tells why
                    send(socket, message)

            process = RemoteProcess(self._messages(socket), marker, say)
            try:
                yield process
            finally:
                process.leave()

    def forward(self, name: str, local_port: int, endpoint: Endpoint) -> ForwardStatus:
        """Forward a local port (0 for any) to `endpoint`; redirect the forward if there is one.

        Raises:
            Busy: the port is taken.
        """
        answer = self._ask("forward", name=name, local_port=local_port, endpoint=endpoint.to_json())
        return forward_status(answer)

    def forward_port(self, local_port: int, endpoint: PortEndpoint) -> PortStatus:
        """Forward a local port (0 for any) to a further port of a session.

        It is forwarded although nothing listens there yet; the state tells.

        Raises:
            Busy: the local port is taken.
        """
        where = endpoint.to_json()
        answer = self._ask("forward", name=endpoint.name, local_port=local_port, endpoint=where)
        return port_status(answer)

    def unforward_port(self, session: str, port: int) -> bool:
        """Release it; return whether it was forwarded. Starts no link."""
        return self.unforward(port_name(session, port))

    def check(self, session: str) -> ForwardStatus | None:
        """Have what is behind a session's forward proved anew; `None` if there is no forward."""
        answer = self._ask("check", name=session)
        return None if answer is None else forward_status(answer)

    def check_port(self, session: str, port: int) -> PortStatus | None:
        """Have a further port looked at anew; `None` if it is not forwarded."""
        answer = self._ask("check", name=port_name(session, port))
        return None if answer is None else port_status(answer)

    def refusal(self, address: str, port: int) -> str | None:
        """Return why the host's SSH server permits no connection to there, `None` if it does.

        Whether anybody listens there is no matter of permission.
        """
        answer = self._ask("permits", address=address, port=port)
        return None if answer is None else str(answer)

    def unforward(self, name: str) -> bool:
        """Release a forward's port; return whether there was one. Starts no link."""
        try:
            return bool(self._ask("unforward", start=False, name=name))
        except NoLink:
            return False

    @property
    def mount_door(self) -> Path:
        """Where sshfs finds the link; there from the first mount on."""
        return self._files.mount_door

    def mount(self, name: str) -> None:
        """Let the sshfs of a mount in from now on; twice is fine."""
        self._ask("mount", name=name)

    def unmount(self, name: str) -> bool:
        """Let it in no more; return whether there was one. Starts no link."""
        try:
            return bool(self._ask("unmount", start=False, name=name))
        except NoLink:
            return False

    def status(self, *, connect: bool = False) -> LinkStatus:
        """Return the link's state; `connect` starts the link and brings its connection up first.

        Raises:
            NoLink: no link runs, and none was to be started.
        """
        return link_status(self._ask("status", start=connect, connect=connect))

    def forget(self) -> tuple[str, ...]:
        """Forget what the keychain holds for the host; return what that was. Connects nowhere."""
        return tuple(self._ask("forget"))

    def wait_unforwarded(self, name: str) -> None:
        """Return once the session's forward is gone, or the link is."""
        with suppress(NoLink, LinkLost):
            self._ask("watch", start=False, name=name)

    def shut_down(self) -> bool:
        """End the link; return whether there was one. What runs on the host goes on."""
        try:
            return bool(self._ask("shutdown", start=False))
        except NoLink:
            return False

    def _ask(self, operation: str, *, start: bool = True, **arguments: Any) -> Any:
        with self._conversation(operation, start=start, **arguments) as socket:
            for message in self._messages(socket):
                if "result" in message:
                    return message["result"]
        raise Bug(f"the link did not answer `{operation}`")

    @contextmanager
    def _conversation(
        self, operation: str, *, start: bool = True, **arguments: Any
    ) -> Iterator[Socket]:
        request = {
            "op": operation,
            "version": __version__,
            "protocol": PROTOCOL,
            "agent": self._agent_socket,
        } | arguments
        with self._accepted(request, start=start) as socket:
            yield socket

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
        raise Bug(f"the link to `{self.name}` leaves whenever it is called; see {self._files.log}")

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
        self._restore()
        return dial(self._files)

    def _restore(self) -> None:
        """Bring back what the last link had, unless somebody else does; then wait for that.

        It comes first even for a command that found the new link running, for what it asks may be
        about what is still to come back. To connect is nobody's turn: the link does that once.
        """
        self._restoring = True
        try:
            self.status(connect=True)
            with turn(self._files):
                if self._files.restoring.exists():
                    self._on_start(self)
                    self._files.restoring.unlink(missing_ok=True)
        finally:
            self._restoring = False

    def _messages(self, socket: Socket) -> Generator[Message]:
        """Give the link's messages up to the result, answering its questions in between.

        Raises:
            JlrError: what the link reports; `LinkLost` when it breaks off.
        """
        while True:
            try:
                message = receive(socket)
            except (EOFError, OSError) as gone:
                raise LinkLost(
                    f"the link to `{self.name}` ended in the middle of its answer",
                    hint=f"try again; its log is {self._files.log}",
                ) from gone
            if "ask" in message:
                with suppress(OSError):  # it may have given up waiting, and says so
                    send(socket, self._reply(message))
                continue
            if "error" in message:
                raise from_json(message)
            yield message
            if "result" in message:
                return

    def _reply(self, message: Message) -> Message:
        question = Question(message["ask"], message["text"], echo=message["echo"])
        try:
            return {"answer": self._asker.ask(question)}
        except JlrError as declined:
            return {"declined": declined.to_json()}
