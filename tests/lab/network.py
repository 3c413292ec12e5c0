"""A real network between laptop and host: a link of the kernel's that can go down.

The host has an address in a network namespace of its own, reached over a veth pair. What is
connected to it there is passed on to a server on the loopback.
"""

from __future__ import annotations

import ctypes
import os
import secrets
import socket
import threading
from collections.abc import Callable
from typing import TypeVar

from tests.lab.line import Line
from tests.lab.programs import run

T = TypeVar("T")


class Network:
    """A link to a namespace, and a TCP port there that leads to one of 127.0.0.1.

    Attributes:
        address: the host's address on it.
        line: what passes connections on; its port is the one at that address.
    """

    def __init__(self, target: int) -> None:
        token = secrets.token_hex(3)
        self._name, self._here, self._there = f"jlr-{token}", f"jl{token}a", f"jl{token}b"
        # 198.18.0.0/15 is for tests of networks (RFC 2544); a random /28 of it, for other runs.
        subnet = secrets.randbelow(1 << 13) << 4
        self._subnet = f"198.{18 + (subnet >> 16)}.{subnet >> 8 & 255}."
        self._base = subnet & 255
        self.address = self._host_part(1)
        self._own = 2
        run("ip", "netns", "add", self._name)
        pair = ("type", "veth", "peer", "name", self._there, "netns", self._name)
        run("ip", "link", "add", self._here, *pair)
        run("ip", "-n", self._name, "address", "add", f"{self.address}/28", "dev", self._there)
        run("ip", "address", "add", f"{self._host_part(self._own)}/28", "dev", self._here)
        self.bring_up()
        run("ip", "link", "set", self._here, "up")
        self.line = Line(target, listen=self._listen)

    def _host_part(self, number: int) -> str:
        return f"{self._subnet}{self._base + number}"

    def take_down(self) -> None:
        """Break the link: what is sent vanishes."""
        run("ip", "-n", self._name, "link", "set", self._there, "down")

    def bring_up(self) -> None:
        run("ip", "-n", self._name, "link", "set", self._there, "up")

    def change_address(self) -> None:
        """Give the laptop another address, and take away the one that it had."""
        self._own = 5 - self._own
        run("ip", "address", "flush", "dev", self._here)
        run("ip", "address", "add", f"{self._host_part(self._own)}/28", "dev", self._here)

    def lose(self, share: float) -> None:
        which = ("-m", "statistic", "--mode", "random", "--probability", str(share))
        for way in ("INPUT", "OUTPUT"):
            inside = ("ip", "netns", "exec", self._name)
            run(*inside, "iptables", "-A", way, "-p", "tcp", *which, "-j", "DROP")

    def close(self) -> None:
        self.line.close()
        run("ip", "link", "delete", self._here)
        run("ip", "netns", "delete", self._name)

    def _listen(self, port: int) -> socket.socket:
        """Return a listener in the namespace; any thread may accept from it."""
        return self._inside(lambda: socket.create_server((self.address, port), backlog=128))

    def _inside(self, work: Callable[[], T]) -> T:
        """Do something in the namespace: a thread may enter one, and its sockets stay there."""
        results: list[T | BaseException] = []

        def enter_and_work() -> None:
            try:
                namespace = os.open(f"/run/netns/{self._name}", os.O_RDONLY)
                if ctypes.CDLL(None, use_errno=True).setns(namespace, 0) != 0:
                    raise OSError(ctypes.get_errno(), "setns")  # noqa: TRY301
                os.close(namespace)
                results.append(work())
            except BaseException as error:  # noqa: BLE001  # raised again below
                results.append(error)

        thread = threading.Thread(target=enter_and_work)
        thread.start()
        thread.join()
        [result] = results
        if isinstance(result, BaseException):
            raise result
        return result
