"""A session channel that stays: a relay's, or a mount's."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from jlremote.ssh.channels.channel_handler import ChannelHandler, EventLoop
from jlremote.ssh.channels.session_slots import SessionSlots
from jlremote.ssh.channels.tunnel_channel import TunnelChannel


class SessionChannel(TunnelChannel):
    """A channel that counts among the sessions of its connection; see `TunnelChannel`."""

    def __init__(
        self,
        transport: Any,
        handler: ChannelHandler,
        loop: EventLoop,
        complained: Callable[[bytes], None] = lambda _: None,
    ) -> None:
        super().__init__(transport, handler, loop, complained)
        self.wire = None  # sshfs never pauses, and the programs at both its ends want the cores
        self._slots = SessionSlots.of(transport)

    def ask_session(self) -> None:
        """Ask for the session as soon as one is free; `refused` if too many stay already."""
        if not self._slots.keep(self):
            super().refuse(
                f"{self._slots.lasting()} terminals, mounts, forwards into containers and the like"
                " are open over this connection already"
            )

    def granted(self) -> None:
        """See `LastingSession`."""
        self._loop.call(lambda: self.ask(b"session"))

    def refuse(self, reason: str) -> None:
        """Take the far end's no; sshd's own words for one too many are "open failed"."""
        super().refuse(
            f"no further session on this connection ({reason}); the host's `MaxSessions` may be low"
        )

    def _release(self) -> None:
        super()._release()
        self._slots.leave(self)
