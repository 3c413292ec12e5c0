"""A kernel of the session, and the WebSocket to it, which is opened again when it is lost.

Source: jupyter_server's `services/kernels/connection/base.py`; a client that asks for no
subprotocol gets JSON, or JSON and buffers in one binary message, from servers of all versions.
"""

from __future__ import annotations

import json
import os
import queue
import struct
import threading
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from itertools import accumulate, pairwise
from typing import Any

from jlremote.errors import Authentication, JlrError, NotFound
from jlremote.hosts.context import Context
from jlremote.jupyter.api import JupyterApi, KernelSocket, NoWebSocket, open_socket
from jlremote.laptop.sessions import SessionRecord
from jlremote.place.host.contract import OddAnswer, understood
from jlremote.sessions.open import answering
from jlremote.untrusted import document

PARTS = ("header", "parent_header", "metadata", "content")
# Jupyter starts a kernel that died again; for a client here, this one has ended.
DEATHS = ("restarting", "autorestarting", "dead")
_MOST_EVENTS = 1000  # then TCP holds the kernel's messages back
_FIRST_PAUSE, _LONGEST_PAUSE = 0.2, 5.0
# The host would count each try as a failed login.
_LOGIN_PAUSE = 60.0


@dataclass
class Message:
    """A message to or from a kernel."""

    channel: str
    header: dict[str, Any]
    parent_header: dict[str, Any]
    metadata: dict[str, Any]
    content: dict[str, Any]
    buffers: list[bytes]

    @property
    def kind(self) -> str:
        return str(self.header.get("msg_type", ""))

    @property
    def id(self) -> str:
        return str(self.header.get("msg_id", ""))

    @property
    def request(self) -> str:
        """The id of the request that it answers."""
        return str(self.parent_header.get("msg_id", ""))


def reached(selector: str | None, context: Context) -> tuple[SessionRecord, JupyterApi]:
    """Return a session and its Jupyter; raise `JlrError` if that does not answer."""
    record, forward, _ = answering(selector, context)
    return record, JupyterApi(forward.local_port, forward.server)


class RemoteKernel:
    """A kernel of the session.

    `events` has what happens, in order: a `KernelSocket` that was opened, a message, or the error
    after which nothing follows. `wake` is called after each. `reach` gives the way to the kernel
    after a loss, `api` the one before.
    """

    def __init__(
        self, ident: str, api: JupyterApi, reach: Callable[[], JupyterApi], wake: Callable[[], None]
    ) -> None:
        self.id = ident
        self.events: queue.Queue[KernelSocket | Message | JlrError] = queue.Queue(_MOST_EVENTS)
        self._api: JupyterApi | None = api
        self._reach = reach
        self._wake = wake
        # Jupyter keeps what a kernel says for the client of this id while it is away.
        self._session = os.urandom(16).hex()
        self._received = 0  # how many of its messages have come
        self._over = False

    def begin(self) -> None:
        """Connect, and connect again whenever that is lost, in a thread of its own."""
        threading.Thread(target=self._run, name="remote-kernel", daemon=True).start()

    def leave(self, socket: KernelSocket) -> None:
        """Close the last socket, and open no other one."""
        self._over = True
        with suppress(JlrError):
            socket.close()

    def interrupt(self) -> None:
        """Interrupt the kernel, in a thread: the host may be away for a while."""
        threading.Thread(target=self._interrupt, name="interrupt", daemon=True).start()

    def _interrupt(self) -> None:
        with suppress(JlrError):
            self._reach().interrupt_kernel(self.id)

    def _run(self) -> None:
        pause, rest = _FIRST_PAUSE, threading.Event()
        while not self._over:
            try:
                self._follow()
            except NotFound as gone:
                if not gone.state:  # else its container may run again
                    self._tell(gone)
                    return
            except Authentication:
                pause = _LOGIN_PAUSE
            except (JlrError, OSError):  # as where other connections took all descriptors
                pause = min(_LONGEST_PAUSE, pause * 2)
            else:
                pause = _FIRST_PAUSE
            rest.wait(pause)

    def _follow(self) -> None:
        """Pass on what the kernel says until a loss; raise `NotFound` once it has ended."""
        api, self._api = self._api or self._reach(), None
        try:
            socket = open_socket(api, self.id, self._session, self._received)
        except NoWebSocket:
            if all(self.id != each.id for each in api.kernels()):
                raise NotFound("the kernel has ended there") from None
            raise
        self._tell(socket)
        try:
            while True:
                data = socket.receive()
                self._received += 1
                with suppress(OddAnswer):  # the container's own kernel may say what it likes
                    self._tell(decoded(data))
        except JlrError:
            socket.close()

    def _tell(self, event: KernelSocket | Message | JlrError) -> None:
        self.events.put(event)
        self._wake()


def decoded(data: str | bytes) -> Message:
    """Read a message of Jupyter's; raise `OddAnswer` if it is none."""
    with understood("Jupyter"):
        buffers = []
        if isinstance(data, bytes):
            count = struct.unpack_from("!I", data)[0]
            ends = [*struct.unpack_from(f"!{count}I", data, 4), len(data)]
            if ends != sorted(ends):  # each of a million buffers could be the whole message
                raise ValueError("its parts overlap")
            text, *buffers = [data[begin:end] for begin, end in pairwise(ends)]
            data = text
        message = document(data)
        parts = {part: dict(message[part]) for part in PARTS}
        return Message(str(message["channel"]), **parts, buffers=buffers)


def encoded(message: Message) -> str | bytes:
    """Write a message in Jupyter's format."""
    parts = {name: value for name, value in vars(message).items() if name != "buffers"}
    text = json.dumps(parts, ensure_ascii=False)  # escaped it is up to six times as long
    if not message.buffers:
        return text
    sent = [text.encode(), *message.buffers]
    begins = accumulate(map(len, sent[:-1]), initial=4 * (len(sent) + 1))
    return struct.pack(f"!{len(sent) + 1}I", len(sent), *begins) + b"".join(sent)
