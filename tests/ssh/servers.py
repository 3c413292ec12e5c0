"""An ssh-agent, and a network of two hosts behind one another."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path
from types import TracebackType

import psutil

from tests.lab.place import LabError
from tests.lab.programs import SYSTEM_PATH, run, wait_until


class AgentProcess:
    """A real ssh-agent on a socket of its own."""

    def __init__(self, socket: Path) -> None:
        self.socket = socket
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> AgentProcess:
        self._process = subprocess.Popen(
            ("ssh-agent", "-D", "-a", str(self.socket)), stdout=subprocess.DEVNULL
        )
        wait_until(self.socket.exists, "the agent's socket")
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        assert self._process is not None
        self._process.terminate()
        self._process.wait()

    def add(self, key: Path) -> None:
        """Hand a key without a passphrase to the agent, its certificate too if there is one."""
        run("ssh-add", "-q", str(key), env={"PATH": SYSTEM_PATH, "SSH_AUTH_SOCK": str(self.socket)})

    def suspend(self) -> None:
        """Let the agent hang."""
        assert self._process is not None
        psutil.Process(self._process.pid).suspend()

    def resume(self) -> None:
        """Let the agent answer again."""
        assert self._process is not None
        psutil.Process(self._process.pid).resume()


class Network:
    """Two hosts behind one another: the laptop reaches the bastion, only the bastion the inner one.

    laptop (this machine) ── 10.231.N.0/30 ── bastion ── 10.232.N.0/30 ── inner
    """

    def __init__(self, number: int) -> None:
        self.bastion, self.inner = f"jlr-bastion-{number}", f"jlr-inner-{number}"
        self.bastion_address = f"10.231.{number}.2"
        self.inner_address = f"10.232.{number}.2"
        self._number = number

    def __enter__(self) -> Network:
        if shutil.which("ip") is None:
            raise LabError("`ip` is not installed")
        self._remove()
        number = self._number
        near, far = f"jlrn{number}", f"jlrf{number}"
        for namespace in (self.bastion, self.inner):
            run("ip", "netns", "add", namespace)
            run("ip", "-n", namespace, "link", "set", "lo", "up")
        run("ip", "link", "add", near, "type", "veth", "peer", "name", near, "netns", self.bastion)
        run("ip", "-n", self.bastion, "link", "add", far, "type", "veth", "peer", "name", far,
            "netns", self.inner)  # fmt: skip
        self._address("", near, f"10.231.{number}.1/30")
        self._address(self.bastion, near, f"{self.bastion_address}/30")
        self._address(self.bastion, far, f"10.232.{number}.1/30")
        self._address(self.inner, far, f"{self.inner_address}/30")
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._remove()

    def _address(self, namespace: str, device: str, address: str) -> None:
        where = ("-n", namespace) if namespace else ()
        run("ip", *where, "address", "add", address, "dev", device)
        run("ip", *where, "link", "set", device, "up")

    def _remove(self) -> None:
        for namespace in (self.bastion, self.inner):
            if (Path("/run/netns") / namespace).exists():
                run("ip", "netns", "delete", namespace)
