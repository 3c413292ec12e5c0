"""Puts a link together: the only place where the link's parts meet the SSH room."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

from jlremote.jupyter.locate import locate
from jlremote.jupyter.server import Endpoint
from jlremote.link.connection_host import ConnectionHost
from jlremote.link.files import LinkFiles
from jlremote.link.forwards import Forwards
from jlremote.link.server import LinkServer
from jlremote.link.supervisor import Supervisor
from jlremote.questions import Asker
from jlremote.ssh.connection import connect
from jlremote.ssh.contract import Connection
from jlremote.ssh.destination import resolve
from jlremote.ssh.forwarder import TunnelForward


class Dialer:
    """Dials the host, each time with the settings and the agent as they are by then."""

    def __init__(self, files: LinkFiles) -> None:
        self._files = files
        self._agent_socket = os.environ.get("SSH_AUTH_SOCK")

    def hand_over(self, agent_socket: str) -> None:
        """Take the agent of the latest command: the one we began with dies with its shell."""
        self._agent_socket = agent_socket

    def dial(self, asker: Asker) -> Connection:
        """Return a new connection."""
        destination = resolve(self._files.host, self._files.ssh_config)
        return connect(destination, asker, agent_socket=self._agent_socket)


@contextmanager
def assemble(files: LinkFiles, *, idle_seconds: float) -> Iterator[LinkServer]:
    """Give the server of a link whose parts work; leaving stops them."""
    dialer = Dialer(files)
    supervisor = Supervisor(
        dialer.dial,
        wanted=lambda: len(forwards) > 0,
        on_up=lambda connection: forwards.prove_all(connection),
    )

    def find(connection: Connection, known: Endpoint) -> Endpoint:
        return locate(ConnectionHost(files.host, connection), known)

    forwards = Forwards(supervisor, find, TunnelForward)
    supervisor.start()
    try:
        yield LinkServer(
            supervisor, forwards, idle_seconds=idle_seconds, hand_over=dialer.hand_over
        )
    finally:
        forwards.stop()
        supervisor.end()
