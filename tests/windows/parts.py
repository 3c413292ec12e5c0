"""A session on Windows, and what its commands said."""

from __future__ import annotations

import shlex
import shutil
import socket
import socketserver
import subprocess
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast
from urllib.request import urlopen

from jupyter_client.blocking.client import BlockingKernelClient
from jupyter_client.connect import write_connection_file

from tests.lab.laptop import Laptop
from tests.lab.programs import SYSTEM_PATH, Result, attempt, wait_until
from tests.lab.windows import PROGRAM, WINE, WindowsLaptop
from tests.sessions.parts import Session
from tests.ssh.servers import AgentProcess

LONGEST = 1 << 16
# OpenSSH's agent on Windows, whose answers come from a port.
AGENT = r"""
import _winapi, contextlib, socket, sys
def instance():
    return _winapi.CreateNamedPipe(r"\\.\pipe\openssh-ssh-agent", 3, 0, 255, 65536, 65536, 0, 0)
following = instance()
print("ready", flush=True)
while True:
    pipe = following
    with contextlib.suppress(OSError):  # another program was quicker
        _winapi.ConnectNamedPipe(pipe, False)
    following = instance()
    agent = socket.create_connection(("127.0.0.1", int(sys.argv[1])))
    with agent, contextlib.suppress(OSError):
        agent.sendall(_winapi.ReadFile(pipe, 65536)[0])
        _winapi.WriteFile(pipe, agent.recv(65536))
        _winapi.ReadFile(pipe, 1)  # until the other end is closed
    _winapi.CloseHandle(pipe)
"""


def succeeded(result: Result) -> str:
    """Return what a command printed; it must have ended with 0."""
    assert result.status == 0, result
    return result.stdout


@contextmanager
def windows_agent(laptop: WindowsLaptop, key: Path, folder: Path) -> Iterator[None]:
    """Give OpenSSH's agent of Windows: its pipe, which leads to a real agent of Linux.

    The person's key is in no file meanwhile.
    """
    with AgentProcess(folder / "agent") as agent, Ferry(folder / "agent") as ferry:
        agent.add(key)
        kept = laptop.profile / ".ssh/id_ed25519"
        kept.rename(kept.with_name("kept"))
        port = str(ferry.server_address[1])
        served = laptop.wine.popen(WINE, PROGRAM, "-c", AGENT, port, stdout=subprocess.PIPE)
        assert served.stdout is not None
        assert served.stdout.readline().strip() == b"ready"
        try:
            yield
        finally:
            served.kill()
            served.wait()
            served.stdout.close()
            kept.with_name("kept").rename(kept)


class Ferry(socketserver.ThreadingTCPServer):
    """Leads each connection, a question and an answer, to a unix socket."""

    daemon_threads = True

    def __init__(self, path: Path) -> None:
        self.path = str(path)
        super().__init__(("127.0.0.1", 0), Crossing)
        threading.Thread(target=self.serve_forever, args=(0.05,), daemon=True).start()

    def server_close(self) -> None:
        self.shutdown()
        super().server_close()


class Crossing(socketserver.BaseRequestHandler):
    server: Ferry

    def handle(self) -> None:
        with socket.socket(socket.AF_UNIX) as agent:
            agent.connect(self.server.path)
            agent.sendall(self.request.recv(LONGEST))
            self.request.sendall(agent.recv(LONGEST))


@contextmanager
def local_kernel(
    laptop: WindowsLaptop, words: Sequence[str], folder: Path
) -> Iterator[BlockingKernelClient]:
    """Start a kernel by the words of its spec, and give a client; end it afterwards."""
    file, _ = write_connection_file(str(folder / "connection.json"), key=b"secret")
    seen = "Z:" + file.replace("/", "\\")
    argv = [word.replace("{connection_file}", seen) for word in words]
    quiet = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.DEVNULL)
    kernel = laptop.wine.popen(WINE, *argv, **quiet)
    client = BlockingKernelClient(connection_file=file)
    client.load_connection_file()
    client.start_channels(hb=False)
    try:
        client.wait_for_ready(timeout=90)
        yield client
        client.shutdown()
        assert kernel.wait(60) == 0
    finally:
        kernel.kill()
        kernel.wait()
        client.stop_channels()


@dataclass(frozen=True)
class WindowsSession:
    """A session, with the object that `jlr start --json` printed of it."""

    laptop: WindowsLaptop
    report: dict[str, Any]

    @property
    def name(self) -> str:
        return str(self.report["name"])

    @property
    def url(self) -> str:
        return str(self.report["url"])

    def page(self) -> Session:
        """Return it as a browser has it: its port is this machine's."""
        return Session(cast("Laptop", self.laptop), self.report)

    def ssh(self, command: str, stdin: str, folder: Path) -> Result:
        """Run a command there by ssh, whose proxy command is jlr's on Windows.

        `jlr config ssh` has made the keys. They are copied to a folder, in which ssh of Linux finds
        them private enough.
        """
        for name in ("client_key", "known_hosts"):
            made = folder / name
            shutil.copy(self.laptop.profile / "AppData/Local/jlr/ssh" / name, made)
            made.chmod(0o600)
        proxy = shlex.join(self.laptop.command("proxy", f"{self.name}.jlr"))
        options = (f"ProxyCommand={proxy}", f"IdentityFile={folder}/client_key", "HostKeyAlias=jlr")
        known = (f"UserKnownHostsFile={folder}/known_hosts", "IdentitiesOnly=yes", "BatchMode=yes")
        words = [word for option in (*options, *known) for word in ("-o", option)]
        argv = ("ssh", "-F", "none", *words, "jlr", command)
        variables = {**self.laptop.wine.environment, "PATH": SYSTEM_PATH}
        return attempt(*argv, stdin=stdin, env=variables, timeout=120)

    def answers(self) -> bool:
        try:
            with urlopen(f"http://{self.page().base}api", timeout=5) as answer:
                return b"version" in answer.read()
        except OSError:
            return False

    def await_answer(self, timeout: float = 60) -> None:
        wait_until(self.answers, f"an answer at {self.url}", timeout=timeout)
