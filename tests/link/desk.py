"""A person at a laptop: commands without the command line, and what can be seen of the link."""

from __future__ import annotations

import re
import shutil
import socket
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field

import psutil
import pytest

from jlremote.hosts.context import Context
from jlremote.hosts.links import link_to
from jlremote.hosts.requests import StartRequest
from jlremote.jupyter.api import JupyterApi
from jlremote.laptop import sessions
from jlremote.link.client.call import NoLink
from jlremote.link.client.link import Link
from jlremote.link.wire.link_files import LinkFiles
from jlremote.link.wire.states import ForwardStatus
from jlremote.listing.session_report import SessionReport
from jlremote.questions import Asker
from jlremote.sessions.open import restore
from jlremote.sessions.start import start
from tests.lab.fork_server import link_forker
from tests.lab.laptop import Laptop
from tests.lab.ports import free_port
from tests.lab.programs import PATIENCE, lives
from tests.lab.sshd import SSHServer
from tests.link.fakes import FakePerson, until
from tests.stories.parts import Notes


@dataclass
class Desk:
    """Where a person sits who types `host` after `ssh`."""

    laptop: Laptop
    host: str = "lab"
    person: Asker = field(default_factory=FakePerson)

    @property
    def context(self) -> Context:
        return Context(self.laptop.ssh_config, self.person, Notes(), restore)

    @property
    def files(self) -> LinkFiles:
        return LinkFiles(self.host, self.laptop.ssh_config)

    def leftovers(self) -> list[str]:
        """Return the files by which a link is found, as long as there are any."""
        found = self.files.socket, self.files.key
        return [path.name for path in found if path.exists()]

    def link(self) -> Link:
        return link_to(self.host, self.context)

    def run(self, script: str) -> str:
        return self.link().run({"script": script})["script"].stdout

    def start(self, name: str, runtime: str = "none") -> SessionReport:
        """Start a session, whose server runs already.

        On a port of its own if it is new: another run of these tests may look for the next one.
        """
        known = sessions.find(self.host, name)
        port = known.local_port if known else free_port()
        request = StartRequest(self.host, name, runtime=runtime, local_port=port)
        return start(request, self.context)

    def forward(self, name: str) -> ForwardStatus:
        """Return what the link says of a session's forward; starts nothing."""
        found = self.link().status().forward(name)
        assert found is not None
        return found

    def state(self) -> str:
        """Return the link's state, `no link` for none; starts nothing."""
        try:
            return self.link().status().state
        except NoLink:
            return "no link"

    def server_pid(self, forward: ForwardStatus, timeout: float = 30) -> int:
        server = forward.server
        return int(JupyterApi(forward.local_port, server, timeout).status()["pid"])

    def processes(self) -> list[psutil.Process]:
        return [p for p in self.laptop.processes() if is_link(p)]

    def process(self) -> psutil.Process:
        (found,) = self.processes()
        return found

    def command(self, *arguments: str, code: str = "") -> Sequence[str]:
        return (sys.executable, "-c", f"{_LINK}\n{code}", str(self.laptop.ssh_config), *arguments)


@contextmanager
def at_desk(laptop: Laptop) -> Iterator[Desk]:
    """Let this very process be one of a laptop's for a while."""
    with pytest.MonkeyPatch.context() as patch:
        for name in laptop.environment.keys() - {"PATH"}:
            patch.setenv(name, laptop.environment[name])
        patch.delenv("SSH_AUTH_SOCK", raising=False)
        patch.setattr(subprocess, "Popen", link_forker())
        yield Desk(laptop)


def forget_sessions(laptop: Laptop) -> None:
    """Delete a laptop's sessions, settings and notes, and let its link to `lab` run on."""
    with at_desk(laptop) as desk:
        link = desk.link()
        with suppress(NoLink):
            for forward in link.status().forwards:
                link.unforward(forward.session, forward.port)
        for record in sessions.load_all():
            sessions.delete(record)
    for unreadable in (laptop.folder / "state" / "jlr" / "sessions").glob("*.json"):
        unreadable.unlink()
    shutil.rmtree(laptop.folder / "config" / "jlr", ignore_errors=True)
    (laptop.folder / "opened").unlink(missing_ok=True)


_LINK = """
import sys
from pathlib import Path
from jlremote.link.client.link import Link
from jlremote.questions import NeverAsks
link = Link("lab", Path(sys.argv[1]), NeverAsks("ask in a terminal"))
"""


def is_link(process: psutil.Process) -> bool:
    """Return whether a process is a link; it may have ended meanwhile."""
    try:
        return "jlremote.link" in process.cmdline() and lives(process)
    except psutil.Error:
        return False


def logins(server: SSHServer, before: str = "") -> int:
    """Return how many connections a server has let in since its log was `before`."""
    return len(re.findall(r"Accepted \w+ for", server.log_text()[len(before) :]))


PAGE_LOAD = b"GET /lab HTTP/1.1\r\nHost: 127.0.0.1:%d\r\nAccept: text/html\r\n\r\n"


def asked(port: int, request: bytes) -> bytes:
    """Send a request, with the port to be filled in, and return all that comes back."""
    with socket.create_connection(("127.0.0.1", port), timeout=PATIENCE) as sock:
        sock.sendall(request % port)
        answer = b""
        try:
            while data := sock.recv(65536):
                answer += data
        except ConnectionResetError:
            pass
        return answer


def check_turned_away(desk: Desk, name: str, state: str, detail: str) -> None:
    """Wait for the state; then a browser is told it, and anything else is turned away."""
    until(lambda: desk.forward(name).state == state, f"the state {state}")
    forward = desk.forward(name)
    assert detail in (forward.detail or "")
    pages: list[bytes] = []

    def told() -> bytes:
        # One that is turned away before it has said a word is only hung up on.
        pages.append(asked(forward.local_port, PAGE_LOAD))
        return pages[-1]

    until(told, "the page for a browser")
    assert pages[-1].startswith(b"HTTP/1.1 503 ")
    assert detail.encode() in pages[-1]
    assert asked(forward.local_port, b"PUT /api HTTP/1.1\r\nHost: 127.0.0.1:%d\r\n\r\n") == b""
