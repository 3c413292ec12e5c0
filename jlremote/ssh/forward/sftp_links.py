"""Symbolic links of a mount: those that could lead out of it are refused.

A link's target is resolved on this machine, so a link on a hostile host that is absolute, or has
`..`, could name any of this machine's files (CVE-2026-47187). sshfs can only refuse all of them.
Here the answers to READLINK are read, and a target passes if it stays inside: `..` only at its
beginning, and no more of them than there are folders between the mount's root and the link. What
follows goes down, through folders and through links that are judged themselves.

A refused answer is replaced by one of the same length, so a channel's window counts as before.
The packets are those of SFTP version 3 (draft-ietf-secsh-filexfer-02).
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator

_READLINK, _STATUS, _NAME = 19, 101, 104
_PERMISSION_DENIED = 3
_HEAD = struct.Struct(">IBI")  # length of what follows, kind, number of the request
_LARGEST = 1 << 16  # of a packet with a path
_NUMBER = struct.Struct(">I")


class Packets:
    """Cuts a stream into packets, of which those that are `wanted` come whole.

    `wanted` gets the kind and number of each packet, once.
    """

    def __init__(self, wanted: Callable[[int, int], bool]) -> None:
        self._wanted = wanted
        self._begun = bytearray()  # of a packet that is wanted, or whose head is not whole
        self._missing = _HEAD.size  # of the head, then of the packet
        self._passing = 0  # bytes of a packet that is not wanted

    def cut(self, data: memoryview) -> Iterator[tuple[bytes | memoryview, bool]]:
        """Yield pieces of the stream in order, each with whether it is a wanted packet.

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
                if not self._wanted(kind, number):
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

    `root` is the mounted folder on the host, an absolute path.
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
        as_it_is, pieces = True, list[bytes | memoryview]()
        for piece, whole in self._answered.cut(data):  # each is judged before the next is cut
            pieces.append(self._judged(piece) if whole else piece)
            as_it_is = as_it_is and not whole
        if as_it_is and sum(map(len, pieces)) == len(data):
            return data
        return memoryview(b"".join(pieces))

    def _depth_of(self, path: bytes) -> int:
        """Return how many folders are between the mount's root and a link."""
        below = path.removeprefix(self._root).split(b"/")
        return 0 if not path.startswith(self._root) or b".." in below else len(below) - 1

    def _is_target(self, kind: int, number: int) -> bool:
        depth = self._depths.pop(number, None)
        self._depth = depth or 0
        return depth is not None and kind == _NAME

    def _judged(self, packet: bytes | memoryview) -> bytes:
        packet = bytes(packet)
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
