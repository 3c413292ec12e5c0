"""The ports of a kernel on this laptop, as a connection file names them.

Source: https://jupyter-client.readthedocs.io/en/stable/messaging.html#the-wire-protocol
"""

from __future__ import annotations

import hmac
import json
import os
import socket
import sys
from collections.abc import Iterator
from contextlib import suppress
from ipaddress import ip_address
from pathlib import Path
from typing import Any

import zmq
from zmq.utils.monitor import recv_monitor_message

from jlremote.errors import JlrError
from jlremote.kernels.remote_kernel import PARTS, Message
from jlremote.place.host.addresses import is_own
from jlremote.untrusted import Refused, document

CHANNELS = {"shell": zmq.ROUTER, "control": zmq.ROUTER, "stdin": zmq.ROUTER, "iopub": zmq.PUB}
_DELIMITER = b"<IDS|MSG>"
_LINGER_MILLISECONDS = 1000
# For a client that is slower than what a kernel prints, or what has waited; more would be dropped.
_MOST_WAITING = 100_000
# Jupyter's own server takes less in one message.
_MOST_BYTES = 1 << 26
# The heartbeat is echoed, and a subscription is remembered.
_MOST_SHORT_BYTES = 1 << 10
# Some messages, as those of widgets, are never answered.
_MOST_ASKERS = 10_000
_KNOWS_OWNERS = sys.platform == "linux"


class LocalPorts:
    """The sockets of a kernel that clients on this laptop connect to."""

    def __init__(self, connection_file: Path) -> None:
        facts = json.loads(connection_file.read_text("utf-8"))
        self._key = str(facts["key"]).encode()
        self._digest = str(facts.get("signature_scheme", "hmac-sha256")).partition("-")[2]
        self._context = zmq.Context()
        self._poller = zmq.Poller()
        self._sockets = {
            name: self._bound(kind, facts, name)
            # REP would wait for ever after a message without its empty frame.
            for name, kind in (*CHANNELS.items(), ("hb", zmq.ROUTER))
        }
        watched = self._sockets.values() if _KNOWS_OWNERS else ()
        self._arrivals: list[zmq.Socket[bytes]]
        self._arrivals = [each.get_monitor_socket(zmq.EVENT_ACCEPTED) for each in watched]
        for arrivals in self._arrivals:
            self._poller.register(arrivals, zmq.POLLIN)
        self._woken, self._waker = socket.socketpair()
        self._waker.setblocking(False)
        self._poller.register(self._woken, zmq.POLLIN)
        self._askers: dict[str, list[bytes]] = {}
        self._signatures: dict[bytes, None] = {}

    def _bound(self, kind: int, facts: dict[str, Any], name: str) -> zmq.Socket[bytes]:
        port, ip = facts[f"{name}_port"], facts["ip"]
        transport = facts.get("transport", "tcp")
        address = f"tcp://{ip}:{port}" if transport == "tcp" else f"{transport}://{ip}-{port}"
        made = self._context.socket(kind)
        made.linger = _LINGER_MILLISECONDS
        made.sndhwm = _MOST_WAITING
        made.maxmsgsize = _MOST_SHORT_BYTES if name in ("hb", "iopub") else _MOST_BYTES
        if kind == zmq.ROUTER:
            made.router_handover = True  # a client that connects anew keeps its identity
        try:
            made.bind(address)
        except zmq.ZMQError as error:
            raise JlrError(f"cannot listen on `{address}`: {error.strerror}") from error
        if kind != zmq.PUB:
            self._poller.register(made, zmq.POLLIN)
        return made

    def wake(self) -> None:
        """Let `received` return, from another thread or a signal handler."""
        with suppress(OSError):  # it is being woken, or has ended
            self._waker.send(b"-")

    def received(self, seconds: float) -> Iterator[Message]:
        """Yield the messages that clients have sent; wait up to `seconds` for the first one."""
        ready = dict(self._poller.poll(round(seconds * 1000)))
        if self._woken.fileno() in ready:
            self._woken.recv(4096)
        for arrivals in self._arrivals:
            with suppress(zmq.Again):
                while arrivals in ready:
                    _turn_away(int(recv_monitor_message(arrivals, zmq.NOBLOCK)["value"]))
        for name, source in self._sockets.items():
            with suppress(zmq.Again):
                if source in ready:
                    frames = source.recv_multipart(zmq.NOBLOCK)
                    if name == "hb":
                        source.send_multipart(frames, zmq.NOBLOCK)
                    elif message := self._read(name, frames):
                        yield message

    def _read(self, channel: str, frames: list[bytes]) -> Message | None:
        """Return a client's message; `None` for one that is not signed, or came before.

        Nothing of it is parsed before: any process of this machine can send it.
        """
        try:
            at = frames.index(_DELIMITER)
            signature, *parts = frames[at + 1 : at + 6]
            if self._key and not hmac.compare_digest(self._signed(parts), signature):
                return None
            content = dict(zip(PARTS, (_object(part) for part in parts), strict=True))
        except ValueError:
            return None
        if self._key and signature in self._signatures:
            return None
        message = Message(channel, **content, buffers=frames[at + 6 :])
        self._signatures[signature] = None
        self._askers[message.id] = frames[:at]
        bounded: tuple[dict[Any, Any], ...] = (self._signatures, self._askers)
        for known in bounded:
            if len(known) > _MOST_ASKERS:
                del known[next(iter(known))]
        return message

    def send(self, message: Message) -> None:
        """Send a kernel's message: to the client that asked, or to all on iopub."""
        asker = self._askers.get(message.request, [])
        to = [message.kind.encode()] if message.channel == "iopub" else asker
        if not to or message.channel not in CHANNELS:
            return  # for a client of the session itself
        contents = (getattr(message, part) for part in PARTS)
        parts = [json.dumps(part, ensure_ascii=False).encode() for part in contents]
        frames = [*to, _DELIMITER, self._signed(parts), *parts, *message.buffers]
        self._sockets[message.channel].send_multipart(frames)

    def _signed(self, parts: list[bytes]) -> bytes:
        if not self._key:
            return b""
        return hmac.new(self._key, b"".join(parts), self._digest).hexdigest().encode()

    def close(self) -> None:
        """Send what is left, and close the sockets."""
        ends: tuple[zmq.Socket[bytes] | socket.socket, ...] = (self._woken, self._waker)
        for each in (*self._sockets.values(), *self._arrivals, *ends):
            each.close()
        self._context.term()


def _turn_away(descriptor: int) -> None:
    """End a connection of another user, who could read what cells print, and fill the memory."""
    # zmq may have closed it, and another connection have its number.
    with suppress(OSError, ValueError), socket.socket(fileno=os.dup(descriptor)) as met:
        (address, port), (_, own) = met.getpeername(), met.getsockname()
        table = Path("/proc/net/tcp").read_text("ascii")
        if ip_address(address).is_loopback and not is_own(table, port, own):
            met.shutdown(socket.SHUT_RDWR)


def _object(text: bytes) -> dict[str, Any]:
    value = document(text)
    if not isinstance(value, dict):
        raise Refused("it is no object")
    return value
