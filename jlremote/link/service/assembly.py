"""The link put together: the only module where its parts meet `ssh/`."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from jlremote.link.connection.backoff import Backoff
from jlremote.link.connection.dialer import ConnectionHost, Dialer
from jlremote.link.connection.liveness import LaptopChanges, Liveness
from jlremote.link.connection.supervisor import Supervisor
from jlremote.link.forwards.container_events import ContainerEvents
from jlremote.link.forwards.forwards import Forwards
from jlremote.link.mounts.mounts import Mounts
from jlremote.link.service.server import LinkServer
from jlremote.link.wire.files import LinkFiles
from jlremote.ports.endpoint import Endpoint
from jlremote.ports.locate import locate
from jlremote.ssh.contract import Connection
from jlremote.ssh.forward.forwarder import TunnelForward
from jlremote.ssh.forward.sftp import SftpStreams


@contextmanager
def assemble(files: LinkFiles, *, idle_seconds: float) -> Iterator[LinkServer]:
    """Yield the server of a link whose parts run; leaving stops them."""
    dialer = Dialer(files)
    laptop_changes = LaptopChanges()  # used by the supervisor's thread only
    supervisor = Supervisor(
        dialer.dial,
        wanted=lambda: len(forwards) + len(mounts) > 0,
        on_up=lambda connection: forwards.prove_all(connection),
        liveness=Liveness(lambda: dialer.probing, laptop_changes.changed),
        backoff=Backoff(laptop_changes.changed),
    )

    def find(connection: Connection, known: Endpoint) -> Endpoint:
        return locate(ConnectionHost(files.host, connection), known)

    def changed(connection: Connection, runtime: str, event: str | None) -> None:
        forwards.changed(connection, runtime, event)

    forwards = Forwards(supervisor, find, TunnelForward, ContainerEvents(changed).observe)
    mounts = Mounts(supervisor, SftpStreams(), files.mount_socket)
    supervisor.start()
    try:
        yield LinkServer(supervisor, forwards, mounts, dialer, idle_seconds=idle_seconds)
    finally:
        supervisor.end()  # first: closing the connection ends threads that write to it
        forwards.stop()
        mounts.stop()
