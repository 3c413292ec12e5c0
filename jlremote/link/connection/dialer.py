"""The login to the host, and scripts that the link runs there by itself."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from jlremote.errors import JlrError
from jlremote.laptop.secrets import Secrets
from jlremote.link.connection.elevation import Elevation
from jlremote.link.connection.liveness import Probing
from jlremote.link.connection.login_look import LoginLook
from jlremote.link.wire.link_files import LinkFiles
from jlremote.link.wire.protocol import bytes_of
from jlremote.link.wire.states import LoginShell
from jlremote.place.host.contract import OUTPUT_BYTES, SCRIPT_SECONDS, Completed, Steps
from jlremote.place.host.framing import run_steps
from jlremote.questions import Asker
from jlremote.ssh.config.destination import Destination, SentVariables, resolve
from jlremote.ssh.connect import connect
from jlremote.ssh.connection import Connection
from jlremote.ssh.login.credentials import forget


@dataclass(frozen=True)
class ConnectionHost:
    """A `Host` on one connection, for the checks that the link makes by itself."""

    name: str
    connection: Connection

    def run(
        self, steps: Steps, *, timeout: float = SCRIPT_SECONDS, limit: int = OUTPUT_BYTES
    ) -> dict[str, Completed]:
        def execute(script: str, output: Callable[[str, bytes], None]) -> None:
            try:
                self.connection.execute(bytes_of(script), output, timeout=timeout)
            except TimeoutError as late:
                raise JlrError(f"`{self.name}` did not answer within {timeout:g} s") from late

        return run_steps(steps, limit, execute)


class Dialer:
    """Connects to the host, each time with the present settings and SSH agent.

    Relative paths in the settings begin in `folder`, that of the command which started the link.
    Of the latest connection, `probing` are its `ServerAlive` settings, `notes` a sentence for each
    setting that jlr does not support, and `variables` what its settings send of an environment.
    """

    def __init__(self, files: LinkFiles, folder: Path) -> None:
        self.probing = Probing()
        self.notes: tuple[str, ...] = ()
        self.variables = SentVariables()
        self.host = files.host
        self._files = files
        self._folder = folder
        self._agent_socket = os.environ.get("SSH_AUTH_SOCK")
        self._secrets = Secrets()
        self._elevation = Elevation(self._destination, self._secrets)
        self._login = LoginLook(files.login)

    def hand_over(self, agent_socket: str) -> None:
        """Use the agent of the latest command: the first agent dies with its shell."""
        self._agent_socket = agent_socket

    def dial(self, asker: Asker) -> Connection:
        destination = self._destination()
        self.notes = destination.notes
        self.variables = destination.variables
        wanted = destination.alive_interval, destination.alive_count
        self.probing = Probing(*wanted) if destination.alive_interval > 0 else Probing()
        connection = connect(
            destination,
            asker,
            agent_socket=self._agent_socket,
            secrets=self._secrets,
            sudo=self._elevation,
            head=self._login.head,
        )
        self._login.connected(ConnectionHost(self._files.host, connection))
        return connection

    def login_shell(self, connection: Connection) -> tuple[LoginShell, bool]:
        """Look where a login shell looks; see `LoginLook.look`."""
        return self._login.look(ConnectionHost(self._files.host, connection))

    def elevate(self, connection: Connection, script: str, asker: Asker) -> None:
        """Obtain the password of `sudo`, if a script is going to need it.

        Raises:
            JlrError: no password is right, or there is no terminal to ask in.
        """
        self._elevation.prepare(ConnectionHost(self._files.host, connection), script, asker)

    def forget(self) -> tuple[str, ...]:
        """Delete the keychain's entries of the host and its jump hosts; return their names."""
        return forget(self._destination(), self._secrets)

    def _destination(self) -> Destination:
        return resolve(self._files.host, self._files.ssh_config, self._folder)
