"""A desktop that keeps the notices it is sent, on a session bus of its own."""

from __future__ import annotations

import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress

import psutil
from jeepney import HeaderFields, MessageType, message_bus, new_error, new_method_return
from jeepney.io.blocking import open_dbus_connection

from tests.lab.programs import wait_until

_NAME = "org.freedesktop.Notifications"


class Desktop:
    """The notices that were shown, and the address of the bus."""

    def __init__(self, address: str, capabilities: tuple[str, ...]) -> None:
        self.address = address
        self.shown: list[tuple[str, str]] = []  # titles and texts
        self._capabilities = list(capabilities)
        self._bus = open_dbus_connection(address)
        owned = self._bus.send_and_get_reply(message_bus.RequestName(_NAME), timeout=10)
        assert owned.body == (1,), owned.body
        self._server = threading.Thread(target=self._serve, daemon=True)
        self._server.start()

    def wait(self, number: int = 1) -> list[tuple[str, str]]:
        wait_until(lambda: len(self.shown) >= number, f"{number} notices", 60)
        return self.shown

    def join(self) -> None:
        """Wait for the end of its server, after that of the bus."""
        self._server.join()

    def _serve(self) -> None:
        with suppress(OSError), self._bus as bus:  # until the bus ends
            while True:
                asked = bus.receive()
                if asked.header.message_type is not MessageType.method_call:
                    continue
                method = asked.header.fields[HeaderFields.member]
                if method == "GetCapabilities":
                    bus.send(new_method_return(asked, "as", (self._capabilities,)))
                elif method == "Notify":
                    self.shown.append((asked.body[3], asked.body[4]))
                    bus.send(new_method_return(asked, "u", (len(self.shown),)))
                else:
                    bus.send(new_error(asked, "org.freedesktop.DBus.Error.UnknownMethod"))


@contextmanager
def bus() -> Iterator[str]:
    daemon = psutil.Popen(
        ("dbus-daemon", "--session", "--nofork", "--print-address=1"),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        yield daemon.stdout.readline().strip()
    finally:
        daemon.terminate()
        daemon.wait()
        daemon.stdout.close()


@contextmanager
def desktop(*capabilities: str) -> Iterator[Desktop]:
    """Yield a desktop whose service of notices has these capabilities."""
    with bus() as address:
        one = Desktop(address, capabilities)
        yield one
    one.join()
