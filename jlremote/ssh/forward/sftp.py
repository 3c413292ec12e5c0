"""The `sftp` subsystem of a connection, joined with the socket of an sshfs.

One login serves shells, forwards and mounts, so a host with one-time codes asks once, and the
host's key is verified in one place.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any

from paramiko import common

from jlremote.ssh.channels.event_loop import EventLoop
from jlremote.ssh.channels.session_channel import SessionChannel
from jlremote.ssh.contract import Connection
from jlremote.ssh.forward.socket_bridge import SocketBridge
from jlremote.ssh.wire_format import string

_STOP_SECONDS = 5.0

Ended = Callable[[str | None], None]


class SftpStreams:
    """All SFTP streams of a link, in one thread."""

    def __init__(self) -> None:
        self._loop = EventLoop()
        self._thread = threading.Thread(target=self._loop.run, name="sftp", daemon=True)

    def open(self, connection: Connection, local: Any, ended: Ended) -> SftpStream:
        """Join `local`, a connected stream socket, with a new SFTP server on the host.

        Args:
            connection: the connection to the host.
            local: sshfs's socket; closed when the stream ends.
            ended: told once when the stream is over, with the reason if the host refused it.
        """
        if self._thread.ident is None:  # most links have no mounts
            self._thread.start()
        return SftpStream(connection, local, self._loop, ended)

    def stop(self) -> None:
        """End the thread; streams are closed by those who opened them."""
        self._loop.stop()
        if self._thread.ident is not None:
            self._thread.join(_STOP_SECONDS)
        if not self._thread.is_alive():
            self._loop.close()


class SftpStream:
    """One sshfs and its SFTP server; the handler of the channel, for it asks for the subsystem.

    Attributes:
        connection: what it goes over.
        heard: when the host last did something on this stream, seconds of the monotonic clock.
    """

    def __init__(self, connection: Connection, local: Any, loop: EventLoop, ended: Ended) -> None:
        self.connection = connection
        self.heard = time.monotonic()
        self._loop = loop
        local.setblocking(False)
        self._bridge = SocketBridge(local, loop, _Fate(ended))
        self._channel = _Subsystem(connection.transport, self, loop)
        self._bridge.join(self._channel)
        loop.call(lambda: self._channel.ask_session())

    def abort(self) -> None:
        """Close it, so that whatever sshfs waits for fails now; from any thread."""
        self._loop.call(self._bridge.abort)

    # What the channel tells, in the transport's thread: `ChannelHandler`.

    def opened(self) -> None:
        """Ask for the subsystem; sshfs's first words follow without waiting for the answer."""
        self._loop.call(self._channel.start)
        self._bridge.opened()

    def refused(self, reason: str) -> None:
        """See `ChannelHandler`."""
        self._bridge.refused(reason)

    def received(self, data: memoryview) -> int:
        """See `ChannelHandler`."""
        self.heard = time.monotonic()
        return self._bridge.received(data)

    def ended(self) -> None:
        """See `ChannelHandler`."""
        self._bridge.ended()

    def writable(self) -> None:
        """See `ChannelHandler`."""
        self._bridge.writable()

    def closed(self) -> None:
        """See `ChannelHandler`."""
        self._bridge.closed()

    def lost(self) -> None:
        """See `ChannelHandler`."""
        self._bridge.lost()

    def taken(self) -> None:
        """Learn that the host took some of what was sent to it."""
        self.heard = time.monotonic()


class _Subsystem(SessionChannel):
    """A session channel that runs the SFTP server, whatever program that is on the host."""

    _handler: SftpStream

    def start(self) -> None:
        """Ask for the subsystem, and for an answer: a server without one keeps the channel."""
        head = self._head(common.cMSG_CHANNEL_REQUEST)
        self._send((head, string(b"subsystem"), b"\1", string(b"sftp")))

    def _window_adjust(self, message: Any) -> None:
        self._handler.taken()
        super()._window_adjust(message)

    def _request_failed(self, _message: Any) -> None:
        self._handler.refused("the host's SSH server offers no `sftp` subsystem")


class _Fate:
    """Who is told by the bridge how it ends: `BridgeOwner`; in the loop's thread."""

    def __init__(self, ended: Ended) -> None:
        self._ended = ended
        self._reason: str | None = None

    def accepted(self, _bridge: SocketBridge) -> None:
        """See `BridgeOwner`."""

    def refused(self, _bridge: SocketBridge, reason: str) -> None:
        """See `BridgeOwner`."""
        self._reason = reason

    def failed(self, bridge: SocketBridge) -> None:
        """Close: sshfs fails what it was asked, and connects again when it is asked again."""
        bridge.close()

    def finished(self, _bridge: SocketBridge) -> None:
        """See `BridgeOwner`."""
        self._ended(self._reason)
