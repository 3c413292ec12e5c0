"""A link's server in this process, on a real socket, with a host that the test plays."""

from __future__ import annotations

import multiprocessing.connection as sockets
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, cast

from jlremote.errors import JlrError
from jlremote.link.client.link import Link
from jlremote.link.connection.dialer import Dialer
from jlremote.link.connection.supervisor import Supervisor
from jlremote.link.forwards.link_forwards import Forwards
from jlremote.link.mount_streams import Mounts
from jlremote.link.notices import CellNotices, JobNotices
from jlremote.link.service.link_server import LinkServer
from jlremote.link.service.operations import Operations
from jlremote.link.ssh_server.ssh_clients import SshClients
from jlremote.link.wire.link_files import LinkFiles
from jlremote.link.wire.states import Condition, State
from jlremote.place.host.contract import Host
from jlremote.questions import Asker, NeverAsks
from jlremote.ssh.channels.session_channel import Output
from jlremote.ssh.config.destination import SentVariables
from jlremote.ssh.connection import Connection
from tests.lab.programs import PATIENCE
from tests.link.fakes import LISTEN, FakeConnection, own_folders

SECRET = b"of this test"
Run = Callable[[bytes, Output, dict[str, Any]], int]


class FakeHost(FakeConnection):
    """A connection on which a script does what the test says."""

    def __init__(self) -> None:
        super().__init__()
        self.run: Run = lambda script, output, options: 0

    def execute(self, script: bytes, output: Output, **options: Any) -> int:
        return self.run(script, output, options)


class FakeSupervisor:
    """A connection that is up, or the error of the attempt to make one."""

    def __init__(self) -> None:
        self.host = FakeHost()
        self.condition = Condition(State.UP, since=1.0)
        self.error: JlrError | None = None
        self.connects: Callable[[Asker], None] = lambda asker: None

    def connection(self, asker: Asker) -> Connection:
        self.connects(asker)
        if self.error is not None:
            raise self.error
        return self.host

    def wait(self, timeout: float) -> Connection:
        return self.connection(NeverAsks(""))


class FakeDialer:
    """Remembers the scripts for which `sudo` may want a password."""

    host = "dgx"
    notes = ("`Compression` is left out",)
    variables = SentVariables(("LC_*",))

    def __init__(self) -> None:
        self.elevated: list[str] = []

    def elevate(self, connection: Connection, script: str, asker: Asker) -> None:
        self.elevated.append(script)


class Parts:
    """The parts of a link whose server runs in this process."""

    def __init__(self, files: LinkFiles) -> None:
        self.files = files
        self.supervisor = FakeSupervisor()
        self.dialer = FakeDialer()
        supervisor = cast(Supervisor, self.supervisor)
        self.forwards = Forwards(supervisor, lambda _, known: known, LISTEN, lambda *_: None)
        mounts = Mounts(supervisor, files.mount_socket)
        mounts.stop()  # no sshfs comes, and the loop for one has sockets
        operations = Operations(
            supervisor,
            self.forwards,
            mounts,
            SshClients(supervisor),
            JobNotices(lambda _: cast(Host, None), lambda *_: True),
            CellNotices(supervisor.wait, lambda _: None, lambda *_: None),
            cast(Dialer, self.dialer),
        )
        self.server = LinkServer(operations, idle_seconds=60.0)

    def link(self) -> Link:
        return Link("dgx", None, NeverAsks("ask in a terminal"))


@contextmanager
def served(parts: Parts) -> Iterator[threading.Thread]:
    """Serve commands; the thread ends with the link."""
    parts.files.key.write_bytes(SECRET)
    parts.files.socket.unlink(missing_ok=True)
    listener = sockets.Listener(str(parts.files.socket))
    thread = threading.Thread(target=parts.server.serve, args=(listener, SECRET), daemon=True)
    thread.start()
    try:
        yield thread
    finally:
        parts.link().shut_down()
        thread.join(PATIENCE)
        assert not thread.is_alive()
        parts.files.key.unlink(missing_ok=True)


def new_parts(monkeypatch: Any, folder: Path) -> Parts:
    own_folders(monkeypatch, folder)
    return Parts(LinkFiles("dgx", None))
