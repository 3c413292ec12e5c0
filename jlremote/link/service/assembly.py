"""The link put together: the only module where its parts meet `ssh/`."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

from jlremote.link.connection.backoff import Backoff
from jlremote.link.connection.connection_host import ConnectionHost
from jlremote.link.connection.elevation import Elevation
from jlremote.link.connection.pulse import Probing, Pulse
from jlremote.link.connection.supervisor import Supervisor
from jlremote.link.connection.surroundings import Surroundings
from jlremote.link.forwards.container_events import ContainerEvents
from jlremote.link.forwards.forwards import Forwards
from jlremote.link.mounts.mounts import Mounts
from jlremote.link.service.server import LinkServer
from jlremote.link.wire.files import LinkFiles
from jlremote.ports.endpoint import Endpoint
from jlremote.ports.locate import locate
from jlremote.questions import Asker
from jlremote.ssh.config.destination import Destination, resolve
from jlremote.ssh.connect import connect
from jlremote.ssh.contract import Connection
from jlremote.ssh.forward.forwarder import TunnelForward
from jlremote.ssh.forward.sftp import SftpStreams
from jlremote.ssh.login.credentials import forget
from jlremote.storage.secrets import LateSecrets


class Dialer:
    """Connects to the host, each time with the present settings and SSH agent.

    Attributes:
        probing: the `ServerAlive` settings of the latest connection.
        notes: settings of it that jlr does not support, a sentence each.
    """

    def __init__(self, files: LinkFiles) -> None:
        self.probing = Probing()
        self.notes: tuple[str, ...] = ()
        self._files = files
        self._agent_socket = os.environ.get("SSH_AUTH_SOCK")
        self._secrets = LateSecrets()
        self._elevation = Elevation(self._destination, self._secrets)

    def hand_over(self, agent_socket: str) -> None:
        """Use the agent of the latest command: the first one dies with its shell."""
        self._agent_socket = agent_socket

    def dial(self, asker: Asker) -> Connection:
        """Return a new connection."""
        destination = self._destination()
        self.notes = destination.notes
        wanted = destination.alive_interval, destination.alive_count
        self.probing = Probing(*wanted) if destination.alive_interval > 0 else Probing()
        return connect(
            destination,
            asker,
            agent_socket=self._agent_socket,
            secrets=self._secrets,
            sudo=self._elevation,
        )

    def elevate(self, connection: Connection, script: str, asker: Asker) -> None:
        """Obtain the password of `sudo`, if a script is going to need it.

        Raises:
            JlrError: no password is right, or there is no terminal to ask in.
        """
        host = ConnectionHost(self._files.host, connection)
        self._elevation.prepare(host, script, asker)

    def forget(self) -> tuple[str, ...]:
        """Delete the keychain's entries of the host and its jump hosts; return their names."""
        return forget(self._destination(), self._secrets)

    def _destination(self) -> Destination:
        return resolve(self._files.host, self._files.ssh_config)


@contextmanager
def assemble(files: LinkFiles, *, idle_seconds: float) -> Iterator[LinkServer]:
    """Yield the server of a link whose parts run; leaving stops them."""
    dialer = Dialer(files)
    surroundings = Surroundings()  # used by the supervisor's thread only
    supervisor = Supervisor(
        dialer.dial,
        wanted=lambda: len(forwards) + len(mounts) > 0,
        on_up=lambda connection: forwards.prove_all(connection),
        pulse=Pulse(lambda: dialer.probing, surroundings.changed),
        backoff=Backoff(surroundings.changed),
    )

    def find(connection: Connection, known: Endpoint) -> Endpoint:
        return locate(ConnectionHost(files.host, connection), known)

    def changed(connection: Connection, runtime: str, event: str | None) -> None:
        forwards.changed(connection, runtime, event)

    forwards = Forwards(supervisor, find, TunnelForward, ContainerEvents(changed).observe)
    mounts = Mounts(supervisor, SftpStreams(), files.mount_door)
    supervisor.start()
    try:
        yield LinkServer(supervisor, forwards, mounts, dialer, idle_seconds=idle_seconds)
    finally:
        supervisor.end()  # first: closing the connection ends threads that write to it
        forwards.stop()
        mounts.stop()
