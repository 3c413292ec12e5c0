"""The ssh clients of a link, and the event loop that serves them."""

from __future__ import annotations

import logging
import socket
import threading
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING

from jlremote.editors.editor_keys import editor_keys
from jlremote.link.connection.supervisor import Supervisor
from jlremote.place.runtimes.place import Place
from jlremote.remote import sending
from jlremote.ssh.channels.event_loop import EventLoop

if TYPE_CHECKING:
    import asyncio

    from jlremote.link.ssh_server.client_connection import PlaceForwards

log = logging.getLogger(__name__)

# The client's order counts; `jlr config ssh` gives the fastest one the first place.
_CIPHERS = ("aes128-gcm@openssh.com", "aes256-gcm@openssh.com", "chacha20-poly1305@openssh.com")
# OpenSSH's client tells only servers of that name that its stdout was closed.
_VERSION = "OpenSSH_compatible_jlr"
_REKEY_BYTES = 16 << 30
# OpenSSH's own. Its client holds what a larger one permits, and moves it in memory again and again.
_WINDOW = 2 << 20


class SshClients:
    """All clients of a link; `gone` is called when one has left."""

    def __init__(self, supervisor: Supervisor) -> None:
        self.gone: Callable[[], None] = lambda: None
        self._supervisor = supervisor
        self._lock = threading.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None
        self.places: dict[socket.socket, Place] = {}
        self._streams: EventLoop | None = None
        self._forwards: dict[Place, PlaceForwards] = {}

    def __len__(self) -> int:
        return len(self.places)

    def serve(self, client: socket.socket, place: Place) -> None:
        """Serve SSH on a connected socket until the client leaves; returns at once."""
        import asyncio

        with self._lock:
            if self._loop is None:
                self._loop = asyncio.new_event_loop()
                run = self._loop.run_forever
                threading.Thread(target=run, name="ssh-clients", daemon=True).start()
            self.places[client] = place
        asyncio.run_coroutine_threadsafe(self._serve(client, place), self._loop)

    async def _serve(self, client: socket.socket, place: Place) -> None:
        import asyncssh

        from jlremote.link.ssh_server.client_connection import EditorConnection
        from jlremote.link.ssh_server.command_channel import CommandChannel

        try:
            forwards = self._forwards_of(place)
            session = partial(CommandChannel, place, self._supervisor.wait, forwards)
            keys = editor_keys()
            async with await asyncssh.run_server(
                client,
                server_factory=lambda: EditorConnection(session, forwards),
                server_host_keys=[asyncssh.read_private_key(keys.host)],
                authorized_client_keys=str(keys.client_public),  # for any user, and no other key
                encryption_algs=_CIPHERS,
                compression_algs=None,
                encoding=None,
                server_version=_VERSION,
                line_editor=False,
                agent_forwarding=True,
                gss_host=None,
                rekey_bytes=_REKEY_BYTES,
                window=_WINDOW,
            ) as connection:
                await connection.wait_closed()
        except (OSError, asyncssh.Error) as error:
            log.info("an ssh client of `%s` has left: %r", place.selector, error)
        except Exception:
            log.exception("an ssh client of `%s` was not served", place.selector)
        finally:
            client.close()
            del self.places[client]
            self.gone()

    def _forwards_of(self, place: Place) -> PlaceForwards:
        from jlremote.link.ssh_server.client_connection import PlaceForwards
        from jlremote.ssh.forward.place_streams import PlaceStreams

        if self._streams is None:
            self._streams = EventLoop()
            run = self._streams.run
            threading.Thread(target=run, name="ssh-streams", daemon=True).start()
        if place not in self._forwards:
            prefix = place.runtime.relay_prefix(place.name)
            relay = (*prefix, *sending.PYTHON)  # without a prefix the host's SSH server reaches all
            streams = PlaceStreams(relay, self._streams, direct=not prefix)
            self._forwards[place] = PlaceForwards(streams, self._supervisor.wait)
        return self._forwards[place]

    def end(self, session: str) -> None:
        """End the clients of a session: it was stopped."""
        self._hang_up(lambda place: place.session == session)

    def _hang_up(self, ends: Callable[[Place], bool]) -> None:
        for client, place in tuple(self.places.items()):
            if ends(place):
                with suppress(OSError):  # it has left
                    client.shutdown(socket.SHUT_RDWR)

    def stop(self) -> None:
        self._hang_up(lambda _: True)
        if self._loop is not None:
            self._loop.call_soon_threadsafe(self._loop.stop)
        if self._streams is not None:
            self._streams.stop()
