"""A session channel that stays open: a relay's, or a mount's."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from jlremote.ssh.channels.channel_handler import ChannelHandler
from jlremote.ssh.channels.event_loop import EventLoop
from jlremote.ssh.channels.session_slots import SessionSlots
from jlremote.ssh.channels.tunnel_channel import TunnelChannel


class SessionChannel(TunnelChannel):
    """A channel that counts among the sessions of its connection; see `TunnelChannel`."""

    def __init__(
        self,
        transport: Any,
        handler: ChannelHandler,
        loop: EventLoop,
        on_stderr: Callable[[bytes], None] = lambda _: None,
    ) -> None:
        super().__init__(transport, handler, loop, on_stderr)
        self.reader = None  # sshfs never pauses, and the programs at both its ends want the cores
        self._slots = SessionSlots.of(transport)

    def ask_session(self) -> None:
        """Open the session as soon as a slot is free; `refused` if too many are open."""
        if not self._slots.reserve(self):
            super().refuse(self._slots.too_many())

    def granted(self) -> None:
        """See `LastingSession`."""
        self._loop.call(lambda: self.ask(b"session"))

    def refuse(self, reason: str) -> None:
        """Handle a refusal; sshd says only "open failed" when `MaxSessions` is reached."""
        super().refuse(
            f"no further session on this connection ({reason}); the host's `MaxSessions` may be low"
        )

    def _release(self) -> None:
        super()._release()
        self._slots.release(self)
