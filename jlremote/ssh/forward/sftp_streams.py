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
from jlremote.ssh.forward.socket_bridge import SocketBridge
from jlremote.ssh.interfaces import Connection
from jlremote.ssh.wire_format import string

log = logging.getLogger(__name__)

Ended = Callable[[str | None], None]

# SFTP version 3 (draft-ietf-secsh-filexfer-02).
_READLINK, _STATUS, _NAME = 19, 101, 104
_PERMISSION_DENIED = 3
_HEAD = struct.Struct(">IBI")  # length of what follows, kind, number of the request
_LARGEST = 1 << 16  # of a packet with a path
_NUMBER = struct.Struct(">I")


class SftpStreams:
    """All SFTP streams of a link, in one thread."""

    def __init__(self) -> None:
        self._loop = EventLoop()

    def open(self, connection: Connection, local: Any, root: str, ended: Ended) -> SftpStream:
        """Join `local`, sshfs's connected stream socket, with a new SFTP server on the host.

        `root` is the folder on the host that sshfs shows, and that no link may lead out of.
        When the stream is over `local` is closed, and `ended` is called once, with the reason if
        the host refused it.
        """
        self._loop.start_thread("sftp")
        return SftpStream(connection, local, root, self._loop, ended)

    def stop(self) -> None:
        """End the thread; each stream is closed by its owner."""
        self._loop.end_thread()


class SftpStream(SessionChannel):
    """One sshfs joined with its SFTP server: the session channel, and the bridge's owner."""

    def __init__(
        self, connection: Connection, local: Any, root: str, loop: EventLoop, ended: Ended
    ) -> None:
        local.setblocking(False)
        self._bridge = SocketBridge(local, loop, self)
        super().__init__(connection.transport, self._bridge, loop)
        self._ended = ended
        self._reason: str | None = None
        self._links = LinkGuard(root)
        self._bridge.join(self)
        loop.call(self.ask_session)

    def abort(self) -> None:
        """Close it, so that sshfs's requests fail now; from any thread."""
        self._loop.call(self._bridge.abort)

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
        if allowed:
            super()._take(allowed)

    def _request_failed(self, _message: Any) -> None:
        self._handler.refused("the host's SSH server offers no `sftp` subsystem")


class Packets:
    """Cuts a stream into packets; those that `is_needed` asks for come whole.

    `is_needed` gets the kind and number of each packet, once.
    """

    def __init__(self, is_needed: Callable[[int, int], bool]) -> None:
        self._is_needed = is_needed
        self._begun = bytearray()  # of a packet that is needed, or whose head is not whole
        self._missing = _HEAD.size  # of the head, then of the packet
        self._passing = 0  # bytes of a packet that is not needed

    def cut(self, data: memoryview) -> Iterator[tuple[bytes | memoryview, bool]]:
        """Yield pieces of the stream in order, each with whether it is a needed packet.

        Raises:
            ValueError: it is no such stream.
        """
        while data:
            if self._passing:
                piece, data = data[: self._passing], data[self._passing :]
                self._passing -= len(piece)
                yield piece, False
                continue
            piece, data = data[: self._missing], data[self._missing :]
            self._begun += piece
            self._missing -= len(piece)
            if self._missing:
                return
            whole = len(self._begun) > _HEAD.size
            if not whole:
                length, kind, number = _HEAD.unpack(self._begun)
                rest = length + _NUMBER.size - _HEAD.size
                if rest < 0:
                    raise ValueError(f"an SFTP packet of {length} bytes")
                if not self._is_needed(kind, number):
                    self._passing = rest
                elif rest > _LARGEST:
                    raise ValueError(f"an SFTP packet with a path of {length} bytes")
                elif rest:
                    self._missing = rest
                    continue
            packet, self._begun, self._missing = bytes(self._begun), bytearray(), _HEAD.size
            yield packet, whole


class LinkGuard:
    """The READLINK requests of one stream, and the judgement of their answers.

    `root` is the mounted folder on the host, an absolute path. A refused answer is replaced by one
    of the same length, so a channel's window counts as before.
    """

    def __init__(self, root: str) -> None:
        self._root = root.rstrip("/").encode("utf-8", "surrogateescape") + b"/"
        self._depths: dict[int, int] = {}  # by the number of a request without an answer
        self._asked = Packets(lambda kind, _number: kind == _READLINK)
        self._answered = Packets(self._is_target)
        self._depth = 0

    def asked(self, data: memoryview) -> None:
        """Look at what sshfs sends next, before it is sent."""
        for piece, whole in self._asked.cut(data):
            if whole:
                number = _NUMBER.unpack_from(piece, 5)[0]
                self._depths[number] = self._depth_of(bytes(piece[13:]))

    def answered(self, data: memoryview) -> memoryview:
        """Return what sshfs gets next of the host's answers; the rest of it comes later."""
        unchanged, pieces = True, list[bytes | memoryview]()
        for piece, whole in self._answered.cut(data):  # each is judged before the next is cut
            pieces.append(self._judged(bytes(piece)) if whole else piece)
            unchanged = unchanged and not whole
        if unchanged and sum(map(len, pieces)) == len(data):
            return data
        return memoryview(b"".join(pieces))

    def _depth_of(self, path: bytes) -> int:
        below = path.removeprefix(self._root).split(b"/")
        return 0 if not path.startswith(self._root) or b".." in below else len(below) - 1

    def _is_target(self, kind: int, number: int) -> bool:
        depth = self._depths.pop(number, None)
        self._depth = depth or 0
        return depth is not None and kind == _NAME

    def _judged(self, packet: bytes) -> bytes:
        length = _NUMBER.unpack_from(packet, 13)[0]
        if stays_inside(packet[17 : 17 + length], self._depth):
            return packet
        text = len(packet) - _HEAD.size - 3 * _NUMBER.size
        if text < 0:
            raise ValueError("an SFTP packet that is too short")
        begin = _HEAD.pack(len(packet) - _NUMBER.size, _STATUS, _NUMBER.unpack_from(packet, 5)[0])
        reason = struct.pack(">II", _PERMISSION_DENIED, text) + b" " * text
        return begin + reason + _NUMBER.pack(0)


def stays_inside(target: bytes, depth: int) -> bool:
    """Return whether a link's target stays inside, `depth` folders below the mount's root."""
    names = [name for name in target.split(b"/") if name not in (b"", b".")]
    up = next((number for number, name in enumerate(names) if name != b".."), len(names))
    return not target.startswith(b"/") and up <= depth and b".." not in names[up:]
