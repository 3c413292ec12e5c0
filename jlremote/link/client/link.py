"""The link as a command uses it; it never imports `ssh/`, which takes long to load."""

from __future__ import annotations

import os
import socket as plain_sockets
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from dataclasses import asdict, dataclass
from itertools import chain, count
from pathlib import Path
from typing import TYPE_CHECKING, Any

from jlremote.errors import JlrError
from jlremote.link.client.call import UNANSWERED_SECONDS, Caller, Explain, NoLink, Waiting
from jlremote.link.client.remote_process import RemoteProcess, TerminalKind
from jlremote.link.wire import states
from jlremote.link.wire.link_files import LinkFiles
from jlremote.link.wire.protocol import DATA, Message
from jlremote.link.wire.states import ForwardStatus, LinkStatus, LoginShell
from jlremote.place.host.contract import OUTPUT_BYTES, SCRIPT_SECONDS, Completed, Steps
from jlremote.place.host.framing import announced, new_marker, run_steps
from jlremote.questions import Asker, NeverAsks

if TYPE_CHECKING:
    from jlremote.jupyter.endpoint import Endpoint
    from jlremote.place.runtimes.place import Place


@dataclass(frozen=True)
class KeptShell:
    """A shell that outlasts its connection where the host has tmux."""

    name: str  # tmux's (see `Place.kept`)
    mark: str  # random; printed first where tmux keeps it
    again: str  # the words after `jlr shell` that attach to it again
    without: str  # a script that comes first where tmux does not keep it
    unasked: bool  # whether it is kept over a loss only, and unnoticed
    begun: bool = False  # whether it runs, and is attached to again


@dataclass(frozen=True)
class ShellCommand:
    """What to run in a place (see `Attachment`)."""

    command: tuple[str, ...]  # a shell if it is empty
    user: str | None = None
    workdir: str | None = None
    detach_keys: str | None = None
    kept: KeptShell | None = None
    copies: bool = False  # whether it is the far end of a copy of files


@dataclass(frozen=True)
class LinkEvents:
    """What a command does at events of its link."""

    on_command: Callable[[str], None] = lambda _: None  # gets each script
    on_failure: Callable[[str], None] = lambda _: None  # the stderr of a step of `run` that fails
    on_start: Callable[[Link], None] = lambda _: None
    # A script that has printed nothing for some seconds: of `run` at ever longer intervals, of
    # others once. If it raises, the script is given up.
    on_silence: Callable[[Link, str], None] = lambda *_: None
    # The result of `answers`, when a request has waited for some seconds.
    on_unanswered: Callable[[bool | None], None] = lambda _: None
    explain: Explain = lambda error: error  # the error to raise for a reported one
    waiting: Waiting = lambda *_, **__: nullcontext()


class Link:
    """The link to one host, as a command uses it; starts it when it is needed.

    It is a `Host`: scripts run over the link's connection.
    """

    def __init__(
        self,
        host: str,
        ssh_config: Path | None,
        asker: Asker,
        events: LinkEvents | None = None,
        *,
        agent_socket: str | None = None,
    ) -> None:
        """Describe the link to `host`; nothing is started yet."""
        self.name = host
        self._events = events = events or LinkEvents()
        self._files = LinkFiles(host, ssh_config)
        self._caller = Caller(
            self._files,
            asker,
            agent_socket,
            lambda: events.on_start(self),
            events.explain,
            self._look_for_answer,
            events.waiting,
        )

    def unasked(self, hint: str) -> Link:
        """Return a link to the host for requests that ask and tell nothing; see `NeverAsks`."""
        events = LinkEvents(on_start=self._events.on_start, explain=self._events.explain)
        config, agent = self._files.ssh_config, self._caller.agent_socket
        return Link(self.name, config, NeverAsks(hint), events, agent_socket=agent)

    def run(
        self, steps: Steps, *, timeout: float = SCRIPT_SECONDS, limit: int = OUTPUT_BYTES
    ) -> dict[str, Completed]:
        """Run `steps` on the host (see `Host.run`)."""
        for text in steps.values():
            self._events.on_command(text)

        def execute(script: str, output: Callable[[str, bytes], None]) -> None:
            with self._caller.call("run", script=script, timeout=timeout) as call:
                call.on_silence = self._patience(script)
                for message in call.messages():
                    if "stream" in message:
                        output(message["stream"], message[DATA])

        done = run_steps(steps, limit, execute)
        for step in done.values():
            if step.status != 0:
                self._events.on_failure(step.stderr)
        return done

    def _patience(self, script: str, *, once: bool = False) -> Callable[[], None]:
        """Return a callback that reports the 1st, 2nd, 4th, 8th, … silence of a script."""
        silences = count(1)

        def silent() -> None:
            number = next(silences)
            if number == 1 or (not once and number & (number - 1) == 0):
                self._events.on_silence(self, script)

        return silent

    @contextmanager
    def stream(
        self, script: str, given: Iterable[bytes] = (), *, end: bool = False
    ) -> Iterator[RemoteProcess]:
        """Run `script` and yield its process; leaving the context ends it.

        The pieces of `given`, for stdin, are fetched while the output is iterated over. With `end`,
        stdin ends after them; else it stays open until the context is left (see `until_hang_up`).
        """
        self._events.on_command(script)
        marker, pieces = new_marker(), chain(filter(None, given), (b"",))
        request: Message = {"script": announced(script, marker), "hold_stdin": not end}
        with self._caller.call("run", timeout=None, gives=True, **request) as call:
            call.on_silence = self._patience(script, once=True)
            process = RemoteProcess(call.messages(), marker, call.say)

            def give() -> None:
                if (piece := next(pieces, None)) is not None:
                    process.send(piece)

            process.on_ready = give
            yield process

    def process(
        self, script: str, terminal: TerminalKind | None = None
    ) -> AbstractContextManager[RemoteProcess]:
        """Run `script`, in a terminal or without, with bytes both ways; leaving ends it."""
        marker = None if terminal else new_marker()
        request: Message = {"script": announced(script, marker) if marker else script}
        if terminal:
            request |= {"terminal": asdict(terminal), "environment": dict(os.environ)}
        return self._process("run", request, marker, script)

    def shell(
        self, place: Place, shell: ShellCommand, terminal: TerminalKind | None, *, checked: bool
    ) -> AbstractContextManager[RemoteProcess]:
        """Run a shell or command in a place; leaving ends it.

        Raise `Unproved` if the link does not know whether the place runs and may be joined, and the
        caller has not `checked` that.
        """
        marker = None if terminal else new_marker()
        request: Message = {"place": asdict(place), **asdict(shell), "marker": marker}
        request |= {"terminal": terminal and asdict(terminal), "checked": checked}
        if not shell.copies:  # whose messages are read here
            request["environment"] = dict(os.environ)  # the link sends what ssh would send of it
        return self._process("shell", request, marker)

    @contextmanager
    def _process(
        self, operation: str, request: Message, marker: str | None, script: str = ""
    ) -> Iterator[RemoteProcess]:
        """Begin a script, which the link makes and tells if it is empty."""
        with self._caller.call(operation, timeout=None, gives=True, **request) as call:

            def begun(script: str) -> None:
                self._events.on_command(script)
                call.on_silence = self._patience(script, once=True)

            if script:
                begun(script)
            messages = call.messages()
            process = RemoteProcess(messages, marker, call.say)
            try:
                connected = next((each for each in messages if "connected" in each), {})
                if "script" in connected:
                    begun(connected["script"])
                yield process
            finally:
                process.leave()

    def forward(
        self, session: str, local_port: int, endpoint: Endpoint, *, seen: bool = True
    ) -> ForwardStatus:
        """Forward a local port (0 for any) to `endpoint`; redirect the forward if there is one.

        The endpoint is proved first, unless the caller has just `seen` it. Raise `Busy` if the
        local port is taken.
        """
        request: Message = {"session": session, "local_port": local_port, "seen": seen}
        answer = self._caller.ask("forward", endpoint=asdict(endpoint), **request)
        return states.forward_status(answer)

    def unforward(self, session: str, port: int | None = None) -> bool:
        """Release a session's local port; return whether there was a forward. Starts no link."""
        return self._ask_if_running("unforward", session=session, port=port)

    def check(self, session: str, port: int | None = None) -> ForwardStatus | None:
        """Prove the far end of a forward anew; `None` if there is no such forward."""
        answer = self._caller.ask("check", session=session, port=port)
        return None if answer is None else states.forward_status(answer)

    def refusal(self, *to: str | int) -> str | None:
        """Return why the SSH server does not connect to a port, or to a unix socket of a program.

        It is `None` if it does; a port need not have a program that listens.
        """
        answer: str | None = self._caller.ask("refusal", to=to)
        return answer

    def login_shell(self) -> tuple[LoginShell, bool]:
        """Ask a login shell of the host, once; later scripts find the programs that it finds.

        Return its answer, and whether later scripts find more by this call.
        """
        answer, is_new = self._caller.ask("login_shell")
        return states.login_shell(answer), is_new

    @property
    def mount_socket(self) -> Path:
        """The socket at which sshfs finds the link, from the first mount on."""
        return self._files.mount_socket

    def mount(self, name: str, remote: str) -> None:
        """Admit the sshfs of a mount of the host's folder `remote`; repeating it is harmless."""
        self._caller.ask("mount", name=name, remote=remote)

    def unmount(self, name: str) -> bool:
        """Stop admitting it; return whether it was admitted. Starts no link."""
        return self._ask_if_running("unmount", name=name)

    def serve_mount(self, name: str) -> plain_sockets.socket:
        """Return a socket for an sshfs that cannot hand over its own. Starts no link."""
        return self._taken_over("serve_mount", start=False, name=name)

    def serve_ssh(self, place: Place) -> plain_sockets.socket:
        """Ask the link to serve SSH for a place, and return the socket for the client."""
        return self._taken_over("serve_ssh", place=asdict(place))

    def _taken_over(self, operation: str, **arguments: Any) -> plain_sockets.socket:
        with self._caller.call(operation, **arguments) as call:
            for _ in call.messages():
                pass
            return call.take_over()

    def notify(self, session: str, *, wanted: bool) -> None:
        """Turn notices of a session's long cells and dead kernels on or off."""
        self._caller.ask("notify", session=session, wanted=wanted)

    def watch_job(self, name: str, key: str, kind: str) -> None:
        """Show a desktop notice when a job begins or ends (see `WatchedJob`)."""
        self._caller.ask("watch_job", name=name, key=key, kind=kind)

    def unwatch_job(self, name: str) -> bool:
        """Stop watching a job; return whether its end had not been told. Starts no link."""
        return self._ask_if_running("unwatch_job", name=name)

    def answers(self) -> bool | None:
        """Return within a second whether the host answers, `None` without a connection to it."""
        with suppress(JlrError):
            answer: bool | None = self._caller.ask("answers", start=False)
            return answer
        return None

    @contextmanager
    def waiting(self) -> Iterator[None]:
        """Wait for an answer by another way than the link's requests, within a `with` block."""
        late = threading.Timer(UNANSWERED_SECONDS, self._look_for_answer)
        late.daemon = True
        late.start()
        try:
            yield
        finally:
            late.cancel()

    def _look_for_answer(self) -> None:
        answers = self.answers()
        if not answers:
            self._events.on_unanswered(answers)

    def status(self, *, connect: bool = False, patience: float | None = None) -> LinkStatus:
        """Return the link's state; `connect` starts the link and brings its connection up first.

        A link that is reconnecting gets `patience` seconds for that; `None` means one attempt.
        Raise `NoLink` if no link runs, and `connect` is false.
        """
        how: Message = {"start": connect, "connect": connect, "patience": patience}
        return states.link_status(self._caller.ask("status", **how))

    def forget(self) -> tuple[str, ...]:
        """Delete the host's entries in the keychain and return their names. Does not connect."""
        self._caller.restores = False
        return tuple(self._caller.ask("forget"))

    def stay_disconnected(self) -> None:
        """Record that the link was ended on purpose: lists do not start it again."""
        self._files.disconnected.touch(mode=0o600)

    @property
    def disconnected(self) -> bool:
        """Whether the link was ended on purpose, and not started since."""
        return self._files.disconnected.exists()

    def shut_down(self) -> bool:
        """End the link; return whether one ran. Sessions on the host go on."""
        return self._ask_if_running("shutdown")

    def _ask_if_running(self, operation: str, **arguments: Any) -> bool:
        try:
            return bool(self._caller.ask(operation, start=False, **arguments))
        except NoLink:
            return False
