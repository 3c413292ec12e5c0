"""The operations of the link, one method for each request of a command."""

from __future__ import annotations

import os
import secrets
from contextlib import suppress
from dataclasses import asdict, dataclass, field

from jlremote.errors import Authentication, JlrError, LinkLost
from jlremote.jupyter.endpoint import endpoint_from_json
from jlremote.link.connection.dialer import Dialer
from jlremote.link.connection.supervisor import Supervisor
from jlremote.link.forwards.link_forwards import Forwards
from jlremote.link.forwards.session_forward import SessionForward
from jlremote.link.mount_streams import Mounts
from jlremote.link.notices import CellNotices, JobNotices, WatchedJob
from jlremote.link.service.conversation import Conversation, run
from jlremote.link.ssh_server.ssh_clients import SshClients
from jlremote.link.wire.protocol import Message, Unproved
from jlremote.link.wire.states import ForwardKey, State
from jlremote.place.host.framing import announced
from jlremote.place.host.shell_text import command_line
from jlremote.place.runtimes.place import Place
from jlremote.place.runtimes.runtime import Attachment
from jlremote.place.runtimes.scripts import shell_scripts
from jlremote.ssh.connection import Connection

# How long a command waits for the proof of a forward.
PROOF_SECONDS = 10.0
# How long a host may take to answer, before a waiting person is told that it does not.
ANSWER_SECONDS = 1.0


@dataclass
class Operations:
    """The operations that commands request by name; each returns the result."""

    supervisor: Supervisor
    forwards: Forwards
    mounts: Mounts
    clients: SshClients
    jobs: JobNotices
    cells: CellNotices
    dialer: Dialer
    # What a command of this laptop runs in a place, and ends with the link.
    running: dict[Conversation, str] = field(default_factory=dict)

    def run(self, conversation: Conversation) -> int:
        connection = self.supervisor.connection(conversation)
        script = str(conversation.request["script"])
        self.dialer.elevate(connection, script, conversation)
        return run(conversation, connection, script, self._variables(conversation.request))

    def shell(self, conversation: Conversation) -> int:
        """Run a shell or command in a place; the script is made here, where all is loaded for it.

        Unless the command has `checked` that the place runs and may be joined, its forward must
        know: only what may be joined is forwarded.
        """
        request = conversation.request
        place = Place(**request["place"])
        connection = self.supervisor.connection(conversation)
        if not request["checked"]:
            forward = self.forwards.find((str(place.session), None))
            if forward is None or not forward.is_sure(connection, place.container_id):
                raise Unproved(f"the link does not know whether `{place.selector}` runs")
        script = _shell_script(place, request)
        self.dialer.elevate(connection, script, conversation)
        marker, variables = request["marker"], self._variables(request)
        begun = script if marker is None else announced(script, marker)
        kept = request["kept"] or {}
        if ends := kept.get("unasked", True):
            self.running[conversation] = _in_words(request, place.selector)
        try:
            return run(conversation, connection, begun, variables, shown=script)
        except LinkLost:
            if kept and ends and conversation.cancelled.is_set():  # and not the connection is gone
                with suppress(JlrError, TimeoutError):
                    script = shell_scripts.end_script(kept)
                    connection.execute(script.encode(), lambda *_: None, timeout=10.0)
            raise
        finally:
            self.running.pop(conversation, None)

    def _variables(self, request: Message) -> dict[str, str]:
        return self.dialer.variables.of(request.get("environment", {}))

    def forward(self, conversation: Conversation) -> Message:
        request = conversation.request
        connection = self.supervisor.connection(conversation)
        endpoint = endpoint_from_json(request["endpoint"])
        key = (request["session"], endpoint.further_port)
        enters = endpoint.place.runtime.inside(endpoint.place.name, ":")
        self.dialer.elevate(connection, enters, conversation)
        port, seen = request["local_port"], request["seen"]
        return self._settled(self.forwards.add(key, port, endpoint, connection, seen=seen))

    def check(self, conversation: Conversation) -> Message | None:
        """Prove a forward anew, however sure it seems."""
        connection = self.supervisor.connection(conversation)
        forward = self.forwards.find(_key(conversation.request))
        if forward is None:
            return None
        forward.prove_again(connection)
        return self._settled(forward)

    def _settled(self, forward: SessionForward) -> Message:
        forward.settled(PROOF_SECONDS)
        return forward.to_json(self.supervisor.condition)

    def unforward(self, conversation: Conversation) -> bool:
        key = _key(conversation.request)
        removed = self.forwards.remove(key)
        if key[1] is None:
            self.clients.end(key[0])
        return removed

    def refusal(self, conversation: Conversation) -> str | None:
        connection = self.supervisor.connection(conversation)
        return connection.refusal(conversation.request["to"], PROOF_SECONDS)

    def login_shell(self, conversation: Conversation) -> tuple[Message, bool]:
        answer, is_new = self.dialer.login_shell(self.supervisor.connection(conversation))
        return asdict(answer), is_new

    def mount(self, conversation: Conversation) -> bool:
        self.supervisor.connection(conversation)
        self.mounts.add(conversation.request["name"], conversation.request["remote"])
        return True

    def unmount(self, conversation: Conversation) -> bool:
        return self.mounts.remove(conversation.request["name"])

    def serve_mount(self, conversation: Conversation) -> None:
        """Serve an sshfs on the conversation's socket."""
        self.mounts.admit(conversation.request["name"], conversation.hand_over())

    def serve_ssh(self, conversation: Conversation) -> None:
        """Serve an ssh client on the conversation's socket, once the host is connected."""
        place = Place(**conversation.request["place"])
        connection = self.supervisor.connection(conversation)
        self.dialer.elevate(connection, place.runtime.inside(place.name, ":"), conversation)
        self.clients.serve(conversation.hand_over(), place)

    def notify(self, conversation: Conversation) -> bool:
        request = conversation.request
        self.cells.set(request["session"], wanted=request["wanted"])
        return True

    def watch_job(self, conversation: Conversation) -> bool:
        request = conversation.request
        self.jobs.add(WatchedJob(request["name"], request["key"], request["kind"]))
        return True

    def unwatch_job(self, conversation: Conversation) -> bool:
        return self.jobs.remove(conversation.request["name"])

    def answers(self, _: Conversation) -> bool | None:
        return self.supervisor.answers(ANSWER_SECONDS)

    def forget(self, _: Conversation) -> tuple[str, ...]:
        return self.dialer.forget()

    def status(self, conversation: Conversation) -> Message:
        if conversation.request.get("connect"):
            self._connect(conversation)
        condition = self.supervisor.condition
        places = tuple(self.clients.places.values())
        clients = [f"ssh clients in {place.selector}" for place in places]
        return condition.to_json() | {
            "notes": self.dialer.notes,
            "work": (*self.running.values(), *clients),
            "forwards": self.forwards.to_json(condition),
            "mounts": self.mounts.to_json(),
        }

    def _connect(self, conversation: Conversation) -> Connection:
        """Connect; wait for a reconnect no longer than the command wants to.

        Where packets vanish an attempt takes half a minute, and the state is known meanwhile.
        """
        patience = conversation.request.get("patience")
        if patience is not None and self.supervisor.condition.state is State.RECONNECTING:
            with suppress(Authentication):  # the person can be asked now
                return self.supervisor.wait(float(patience))
        return self.supervisor.connection(conversation)


# The methods that a request may name.
OPERATIONS = frozenset(name for name in vars(Operations) if not name.startswith("_"))


def _shell_script(place: Place, request: Message) -> str:
    """Return the script of `jlr shell`; raise `Usage` if the runtime has no such option."""
    terminal = request["terminal"]
    size = None if terminal is None else os.terminal_size(map(int, terminal["size"]))
    attached = Attachment(size, request["user"], request["workdir"], request["detach_keys"])
    argv, kept = tuple(request["command"]), request["kept"] or {}
    if kept.get("begun"):
        return shell_scripts.again_script(kept)
    mark, fits = kept.get("mark") or secrets.token_hex(8), kept.get("unasked", True)
    script = shell_scripts.script(place.runtime, place.name, attached, argv, mark, sized=fits)
    return shell_scripts.kept_script(script, kept) if kept else script


def _in_words(request: Message, selector: str) -> str:
    if request.get("copies"):
        return f"a copy of files in {selector}"
    command = command_line(request["command"])
    return f"`{command}` in {selector}" if command else f"a shell in {selector}"


def _key(request: Message) -> ForwardKey:
    return request["session"], request["port"]
