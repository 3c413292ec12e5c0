"""The `sftp` subsystem of a connection, joined with the socket of an sshfs.

One login serves shells, forwards and mounts, so a host with one-time codes asks once, and the
host's key is verified in one place.
"""

from __future__ import annotations

import logging
import struct
import threading
import time
from collections.abc import Callable
from typing import Any

from jlremote.ssh.channels.event_loop import EventLoop
from jlremote.ssh.channels.session_slots import SessionChannel
from jlremote.ssh.contract import Connection
from jlremote.ssh.forward.sftp_links import LinkGuard
from jlremote.ssh.forward.socket_bridge import SocketBridge
from jlremote.ssh.wire_format import string

log = logging.getLogger(__name__)

_STOP_SECONDS = 5.0

Ended = Callable[[str | None], None]


class SftpStreams:
    """All SFTP streams of a link, in one thread."""

    def __init__(self) -> None:
        self._loop = EventLoop()
        self._thread = threading.Thread(target=self._loop.run, name="sftp", daemon=True)

    def open(self, connection: Connection, local: Any, root: str, ended: Ended) -> SftpStream:
        """Join `local`, sshfs's connected stream socket, with a new SFTP server on the host.

        `root` is the folder on the host that sshfs shows, and that no link may lead out of.
        When the stream is over `local` is closed, and `ended` is called once, with the reason if
        the host refused it.
        """
        if self._thread.ident is None:  # most links have no mounts
            self._thread.start()
        return SftpStream(connection, local, root, self._loop, ended)

    def stop(self) -> None:
        """End the thread; each stream is closed by its owner."""
        self._loop.stop()
        if self._thread.ident is not None:
            self._thread.join(_STOP_SECONDS)
        if not self._thread.is_alive():
            self._loop.close()


class SftpStream:
    """One sshfs joined with its SFTP server.

    `heard` is when the host last sent or took something, in seconds of the monotonic clock.
    """

    def __init__(
        self, connection: Connection, local: Any, root: str, loop: EventLoop, ended: Ended
    ) -> None:
        self.connection = connection
        self.heard = time.monotonic()
        self._loop = loop
        self._ended = ended
        self._reason: str | None = None
        local.setblocking(False)
        self._bridge = SocketBridge(local, loop, self)
        self._channel = _SftpChannel(self, self._bridge, LinkGuard(root), loop)
        self._bridge.join(self._channel)
        loop.call(self._channel.ask_session)

    def abort(self) -> None:
        """Close it, so that sshfs's requests fail now; from any thread."""
        self._loop.call(self._bridge.abort)

    # The bridge's events, in the loop's thread: `BridgeOwner`.

    def accepted(self, _bridge: SocketBridge) -> bool:
        """Start the SFTP server; sshfs's first request follows without waiting for the answer."""
        self._channel.start()
        return True

    def refused(self, _bridge: SocketBridge, reason: str) -> None:
        self._reason = reason

    def failed(self, bridge: SocketBridge) -> None:
        """Close: sshfs fails its requests, and connects again with the next one."""
        bridge.close()

    def finished(self, _bridge: SocketBridge) -> None:
        self._ended(self._reason)


class _SftpChannel(SessionChannel):
    """A session channel that runs the host's SFTP server."""

    def __init__(
        self, stream: SftpStream, bridge: SocketBridge, links: LinkGuard, loop: EventLoop
    ) -> None:
        super().__init__(stream.connection.transport, bridge, loop)
        self._stream = stream
        self._links = links

    def send(self, data: memoryview) -> None:
        """Send what sshfs sends; see `LinkGuard`."""
        self._links.asked(data)
        super().send(data)

    def start(self) -> None:
        """Request the subsystem, with an answer: a server without one keeps the channel open."""
        self.request(b"subsystem", string(b"sftp"), want_reply=True)

    def _take(self, data: memoryview) -> None:
        self._stream.heard = time.monotonic()
        try:
            allowed = self._links.answered(data)
        except (ValueError, struct.error):
            log.exception("the host's SFTP server ended a mount's stream")
            self.fail()
            return
        if allowed:
            super()._take(allowed)

    def _widen(self, count: int) -> None:
        self._stream.heard = time.monotonic()
        super()._widen(count)

    def _request_failed(self, _message: Any) -> None:
        self._handler.refused("the host's SSH server offers no `sftp` subsystem")
