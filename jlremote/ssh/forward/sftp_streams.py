"""The `sftp` subsystem of a connection, joined with the socket of an sshfs.

One login serves shells, forwards and mounts, so a host with one-time codes asks once, and the
host's key is verified in one place.

A symbolic link's target is resolved on this machine, so a link on a hostile host that is absolute,
or has `..`, could name any of this machine's files (CVE-2026-47187). sshfs can only refuse all of
them. Here the answers to READLINK are read, and a target passes if it stays inside the mount: `..`
only at its beginning, and no more of them than there are folders between the mount's root and the
link. What follows goes down, through folders and through links that are judged themselves.
"""

from __future__ import annotations

import logging
import struct
from collections.abc import Callable, Iterator
from typing import Any

from jlremote.ssh.channels.event_loop import EventLoop
from jlremote.ssh.channels.session_channel import SessionChannel
from jlremote.ssh.connection import Connection
from jlremote.ssh.forward.socket_bridge import SocketBridge
from jlremote.ssh.wire_format import string

log = logging.getLogger(__name__)

Ended = Callable[[str | None], None]

# SFTP version 3 (draft-ietf-secsh-filexfer-02).
_READLINK, _STATUS, _NAME = 19, 101, 104
_PERMISSION_DENIED = 3
_HEAD = struct.Struct(">IBI")  # length of what follows, kind, number of the request
_LARGEST = 1 << 20  # bytes of a packet; OpenSSH's have a quarter at most
_NUMBER = struct.Struct(">I")


class SftpStream(SessionChannel):
    """One sshfs joined with its SFTP server: the session channel, and the bridge's owner.

    `root` is the folder on the host that sshfs shows, and that no link may lead out of. When the
    stream is over `local`, sshfs's connected socket, is closed, and `ended` is called once, with
    the reason if the host refused it.
    """

    def __init__(
        self, connection: Connection, local: Any, root: str, loop: EventLoop, ended: Ended
    ) -> None:
        local.setblocking(False)
        self._bridge = SocketBridge(local, loop, self)
        super().__init__(connection.transport, self._bridge, loop.call)
        self._ended = ended
        self._reason: str | None = None
        self._links = LinkGuard(root)
        self._bridge.join(self)
        self._call(self.ask_session)

    def abort(self) -> None:
        """Close it, so that sshfs's requests fail now; from any thread."""
        self._call(self._bridge.abort)

    # The bridge's events, in the loop's thread: `BridgeOwner`.

    def accepted(self, _bridge: SocketBridge) -> bool:
        """Start the SFTP server; sshfs's first request follows without waiting for the answer.

        An answer is wanted: a server without the subsystem keeps the channel open.
        """
        self.request(b"subsystem", string(b"sftp"), want_reply=True)
        return True

    def refused(self, _bridge: SocketBridge, reason: str) -> None:
        self._reason = reason

    def failed(self, bridge: SocketBridge) -> None:
        bridge.close()  # sshfs fails its requests, and connects again with the next one

    def finished(self, _bridge: SocketBridge) -> None:
        self._ended(self._reason)

    # The channel's messages, both ways.

    def send(self, data: memoryview) -> None:
        self._links.asked(data)
        super().send(data)

    def _take(self, data: memoryview) -> None:
        try:
            allowed = self._links.answered(data)
        except (ValueError, struct.error):
            log.exception("the host's SFTP server ended a mount's stream")
            self.fail()
            return
        self._count(len(data) - len(allowed), 0)  # what waits for the rest of its packet
        if allowed:
            super()._take(memoryview(allowed))

    def _request_failed(self, _message: Any) -> None:
        self._handler.refused("the host's SSH server offers no `sftp` subsystem")


def _packets(begun: bytearray, data: memoryview) -> Iterator[bytes]:
    """Yield the packets of a stream that `data` completes; keep what follows them in `begun`.

    A `ValueError` says that it is no such stream.
    """
    begun += data
    while len(begun) >= _HEAD.size:
        size = _NUMBER.size + _NUMBER.unpack_from(begun)[0]
        if not _HEAD.size <= size <= _LARGEST:
            raise ValueError(f"an SFTP packet of {size - _NUMBER.size} bytes")
        if len(begun) < size:
            return
        packet = bytes(begun[:size])
        del begun[:size]
        yield packet


class LinkGuard:
    """The READLINK requests of one stream, and the judgement of their answers.

    `root` is the mounted folder on the host, an absolute path. A refused answer is replaced by one
    of the same length, so a channel's window counts as before.
    """

    def __init__(self, root: str) -> None:
        self._root = root.rstrip("/").encode("utf-8", "surrogateescape") + b"/"
        self._depths: dict[int, int] = {}  # by the number of a request without an answer
        self._asked, self._answered = bytearray(), bytearray()

    def asked(self, data: memoryview) -> None:
        """Look at what sshfs sends next, before it is sent."""
        for packet in _packets(self._asked, data):
            _, kind, number = _HEAD.unpack_from(packet)
            if kind == _READLINK:
                path = packet[_HEAD.size + _NUMBER.size :]
                below = path.removeprefix(self._root).split(b"/")
                is_below = path.startswith(self._root) and b".." not in below
                self._depths[number] = len(below) - 1 if is_below else 0

    def answered(self, data: memoryview) -> bytes:
        """Return what sshfs gets next of the host's answers; the rest of it comes later."""
        return b"".join(map(self._judged, _packets(self._answered, data)))

    def _judged(self, packet: bytes) -> bytes:
        _, kind, number = _HEAD.unpack_from(packet)
        depth = self._depths.pop(number, None)
        if depth is None or kind != _NAME:
            return packet
        length = _NUMBER.unpack_from(packet, 13)[0]
        if stays_inside(packet[17 : 17 + length], depth):
            return packet
        text = len(packet) - _HEAD.size - 3 * _NUMBER.size
        if text < 0:
            raise ValueError("an SFTP packet that is too short")
        begin = _HEAD.pack(len(packet) - _NUMBER.size, _STATUS, number)
        reason = struct.pack(">II", _PERMISSION_DENIED, text) + b" " * text
        return begin + reason + _NUMBER.pack(0)


def stays_inside(target: bytes, depth: int) -> bool:
    """Return whether a link's target stays inside, `depth` folders below the mount's root."""
    names = [name for name in target.split(b"/") if name not in (b"", b".")]
    up = next((number for number, name in enumerate(names) if name != b".."), len(names))
    return not target.startswith(b"/") and up <= depth and b".." not in names[up:]
