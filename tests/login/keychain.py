"""Keychains: one in memory, and a real Secret Service on a bus of the laptop's own."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import dataclass, field
from types import TracebackType

import psutil

from tests.lab.laptop import Laptop
from tests.lab.programs import wait_until

_OWNED = (
    *("dbus-send", "--session", "--print-reply", "--dest=org.freedesktop.DBus"),
    *("/org/freedesktop/DBus", "org.freedesktop.DBus.NameHasOwner"),
    "string:org.freedesktop.secrets",
)
_LIST = """
import json, secretstorage
items = secretstorage.get_default_collection(secretstorage.dbus_init()).get_all_items()
print(json.dumps({item.get_attributes()["username"]: item.get_secret().decode() for item in items}))
"""


@dataclass
class MemoryKeychain:
    """Keeps secrets in a dictionary."""

    kept: dict[str, str] = field(default_factory=dict)
    name: str = "the keychain"
    present: bool = True

    def get(self, account: str) -> str | None:
        return self.kept.get(account)

    def set(self, account: str, secret: str) -> bool:
        self.kept[account] = secret
        return True

    def delete(self, account: str) -> bool:
        return self.kept.pop(account, None) is not None


class SecretService:
    """GNOME's keyring, found by the laptop's commands over their session bus."""

    def __init__(self, laptop: Laptop) -> None:
        self._laptop = laptop
        self._processes: list[psutil.Popen] = []

    def __enter__(self) -> SecretService:
        bus = psutil.Popen(
            ("dbus-daemon", "--session", "--nofork", "--print-address=1"),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=self._laptop.environment,
            text=True,
        )
        self._processes.append(bus)
        self._laptop.environment["DBUS_SESSION_BUS_ADDRESS"] = bus.stdout.readline().strip()
        self._start("--unlock")  # which makes it, with the password below
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        while self._processes:
            self._stop()

    def lock(self) -> None:
        """Start it anew, as after a login without its password."""
        self._stop()
        self._start()

    def hang(self) -> None:
        """Let it answer no request any more."""
        self._processes[-1].suspend()

    def contents(self) -> dict[str, str]:
        """Return all secrets by their accounts."""
        result = self._laptop.run(sys.executable, "-c", _LIST)
        assert result.status == 0, result
        found: dict[str, str] = json.loads(result.stdout)
        return found

    def _start(self, *options: str) -> None:
        daemon = psutil.Popen(
            ("gnome-keyring-daemon", "--foreground", "--components=secrets", *options),
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env=self._laptop.environment,
            text=True,
        )
        self._processes.append(daemon)
        if options:
            daemon.stdin.write("the keychain's own")
        daemon.stdin.close()
        wait_until(self._is_there, "the start of the keychain")

    def _stop(self) -> None:
        process = self._processes.pop()
        process.kill()
        process.wait()
        for stream in (process.stdin, process.stdout):
            if stream:
                stream.close()

    def _is_there(self) -> bool:
        return "boolean true" in self._laptop.run(*_OWNED).stdout
