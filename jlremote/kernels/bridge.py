"""The bridge between a client on this laptop and a kernel of the session, message by message."""

from __future__ import annotations

import os
import queue
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any
from uuid import uuid4

from jlremote.errors import JlrError, NotFound
from jlremote.hosts.context import Context
from jlremote.jupyter.api import KernelSocket
from jlremote.kernels.kernel_ports import LocalPorts
from jlremote.kernels.remote_kernel import DEATHS, Message, RemoteKernel, encoded, reached

_TURN_SECONDS = 1.0
_EVENTS_A_TURN = 100  # a kernel that prints without end keeps no client out
_LOST = "the connection was lost meanwhile, and with it the answer; some output may be missing"


def _watch_parent() -> Callable[[], bool]:
    if sys.platform != "win32":
        number = os.getppid()
        return lambda: os.getppid() == number
    import psutil  # the number there outlives its process

    parent = psutil.Process().parent()
    return lambda: parent is None or parent.is_running()


class Bridge:
    """Passes messages between clients and a kernel until either ends."""

    def __init__(self, ports: LocalPorts, kernel: RemoteKernel) -> None:
        self._ports = ports
        self._kernel = kernel
        self._parent_lives = _watch_parent()
        self._socket: KernelSocket | None = None
        self._outbox: list[Message] = []
        self._unanswered: dict[str, Message] = {}
        # The requests from before a loss, by the question whose answer comes after theirs.
        self._doubted: tuple[str, list[str]] = ("", [])
        self._over = False

    def serve(self) -> None:
        """Pass messages on until the end; raise `JlrError` if the kernel has ended by itself."""
        self._kernel.begin()
        while not self._over and self._parent_lives():
            wait = _TURN_SECONDS if self._kernel.events.empty() else 0
            for message in self._ports.received(wait):
                self._from_client(message)
            with suppress(queue.Empty):
                for _ in range(_EVENTS_A_TURN):
                    self._happened(self._kernel.events.get_nowait())

    def end(self, *_: object) -> None:
        self._over = True
        self._ports.wake()

    def _from_client(self, message: Message) -> None:
        if message.kind == "shutdown_request":
            self._answer(message, {"status": "ok", "restart": message.content.get("restart")})
            self._over = True
        elif message.kind == "interrupt_request":
            self._kernel.interrupt()
            self._answer(message, {"status": "ok"})
        else:
            if message.kind.endswith("_request"):
                self._unanswered[message.id] = message
            self._send(message)

    def _send(self, message: Message) -> None:
        with suppress(JlrError):
            if self._socket is not None:
                self._socket.send(encoded(message))
                return
        self._socket = None
        self._outbox.append(message)

    def _happened(self, event: KernelSocket | Message | JlrError) -> None:
        if isinstance(event, JlrError):
            raise event
        if isinstance(event, Message):
            self._from_kernel(event)
            return
        waiting, self._outbox = self._outbox, []
        self._socket = event
        new = {message.id for message in waiting}
        if requests := [known for known in self._unanswered if known not in new]:
            # Something simple: the kernel answers in order, so what is unanswered then is lost.
            question = _made("shell", "kernel_info_request", {}, {}, self._unanswered[requests[0]])
            self._doubted = (question.id, requests)
            self._send(question)
        for message in waiting:
            self._send(message)

    def _from_kernel(self, message: Message) -> None:
        if message.kind == "status" and message.content.get("execution_state") in DEATHS:
            raise NotFound("the kernel has died there")
        if message.channel in ("shell", "control"):
            self._unanswered.pop(message.request, None)
            question, doubted = self._doubted
            for lost in doubted if message.request == question else ():
                if lost in self._unanswered:
                    self._give_up(self._unanswered.pop(lost))
        self._ports.send(message)

    def _give_up(self, request: Message) -> None:
        error = {"ename": "ConnectionLost", "evalue": _LOST, "traceback": [_LOST]}
        if request.kind == "execute_request":
            self._answer(request, error, told="error")
        self._answer(request, {"execution_state": "idle"}, told="status")
        self._answer(request, {"status": "error", "execution_count": None, **error})

    def _answer(self, request: Message, content: dict[str, Any], told: str = "") -> None:
        """Answer a request, or tell all clients about it with a message of the kind `told`."""
        kind = told or request.kind.removesuffix("_request") + "_reply"
        channel = "iopub" if told else request.channel
        self._ports.send(_made(channel, kind, content, request.header, request))


def _made(
    channel: str, kind: str, content: dict[str, Any], parent: dict[str, Any], like: Message
) -> Message:
    now = time.strftime("%Y-%m-%dT%H:%M:%S.000000Z", time.gmtime())
    header = {**like.header, "msg_id": uuid4().hex, "msg_type": kind, "date": now}
    return Message(channel, header, parent, {}, content, [])


# A client kills a kernel that has not ended by then, after five seconds.
_END_SECONDS = 4.0
# How long the second process tries to reach a host that is away.
_AWAY_SECONDS = 600.0
_PAUSE_SECONDS = 5.0


def run(selector: str, kind: str, file: Path, ender: tuple[str, ...], context: Context) -> None:
    """Start a kernel of a session, and serve it at the ports of a connection `file`.

    `ender` is the command that ends the kernel whose id follows it, once its stdin has ended.
    Without such a session, and once the kernel has ended by itself, it raises `NotFound`.
    """
    ports, (_, api) = LocalPorts(file), reached(selector, context)
    try:
        ident = api.start_kernel(kind)
    except JlrError:
        hint = f"`jlr local kernels install {selector}` installs those that it has"
        api.refuse_unknown(kind, hint)
        raise
    kernel = RemoteKernel(ident, api, lambda: reached(selector, context)[1], ports.wake)
    bridge = Bridge(ports, kernel)
    signal.signal(signal.SIGINT, lambda *_: kernel.interrupt())  # as clients send it
    signal.signal(signal.SIGTERM, bridge.end)
    pipe, null = subprocess.PIPE, subprocess.DEVNULL
    argv = (*ender, kernel.id)  # it ends the kernel after this process, also after a kill
    process = subprocess.Popen(argv, stdin=pipe, stdout=null, stderr=null, start_new_session=True)
    try:
        bridge.serve()
    finally:
        ports.close()
        assert process.stdin is not None
        process.stdin.close()
        with suppress(subprocess.TimeoutExpired):
            process.wait(_END_SECONDS)


def end(selector: str, kernel: str, context: Context, wait: Callable[[], object]) -> None:
    """End a kernel of a session after `wait`; try for a while if the host is away."""
    wait()
    deadline = time.monotonic() + _AWAY_SECONDS
    while time.monotonic() < deadline:
        try:
            reached(selector, context)[1].end_kernel(kernel)
        except JlrError as failure:  # a container that does not run may do so again
            if isinstance(failure, NotFound) and not failure.state:
                return
            time.sleep(_PAUSE_SECONDS)
        else:
            return
