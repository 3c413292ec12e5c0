"""A private registry, a slow line to it, and a keychain for a laptop."""

from __future__ import annotations

import json
import secrets
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

from tests.lab.accounts import Account
from tests.lab.engine import Engine
from tests.lab.laptop import Laptop
from tests.lab.place import private_folder
from tests.lab.ports import free_port, listens
from tests.lab.programs import PATIENCE, run, wait_until

USER, CLOUD_USER = "$oauthtoken", "AWS"  # of nvcr.io, and of Amazon's registries


@dataclass
class Registry:
    """Debian's docker-registry, where two users get in with one key.

    Attributes:
        engine: the lab's, which reaches it without TLS, as it is on the loopback.
        folder: where its settings and its images are.
        address: where it listens.
        certificate: if there is one, with its key beside it, it speaks TLS.
        port: its port.
        key: what it takes.
    """

    engine: Engine
    folder: Path
    address: str = "127.0.0.1"
    certificate: Path | None = None
    port: int = field(default_factory=free_port)
    key: str = field(default_factory=lambda: f"key-{secrets.token_hex(8)}")

    @property
    def name(self) -> str:
        """What images' names begin with."""
        return f"{self.address}:{self.port}"

    def start(self) -> subprocess.Popen[bytes]:
        """Start it, and return its process once it answers."""
        users = (run("htpasswd", "-Bbn", user, self.key) for user in (USER, CLOUD_USER))
        (self.folder / "htpasswd").write_text("\n".join(users))
        settings = {
            "version": 0.1,
            "log": {"level": "warn"},
            "storage": {"filesystem": {"rootdirectory": str(self.folder / "images")}},
            "http": {"addr": self.name} | self._encryption(),
            "auth": {"htpasswd": {"realm": "lab", "path": str(self.folder / "htpasswd")}},
        }
        config = self.folder / "config.yml"
        config.write_text(json.dumps(settings))  # JSON is YAML
        with (self.folder / "log").open("wb") as log:
            process = subprocess.Popen(
                ("setpriv", "--pdeathsig", "TERM", "docker-registry", "serve", str(config)),
                stdout=log,
                stderr=log,
            )
        wait_until(lambda: listens(self.port), "the start of docker-registry")
        return process

    def _encryption(self) -> dict[str, dict[str, str]]:
        if self.certificate is None:
            return {}
        key = self.certificate.with_suffix(".key")
        return {"tls": {"certificate": str(self.certificate), "key": str(key)}}

    def docker_config(self, *names: str) -> Path:
        """Return a folder of docker's settings that are logged in, for the lab's own use."""
        folder = self.folder / "docker"
        for name in (self.name, *names):
            argv = ("docker", "--config", str(folder), "login", "-u", USER, "--password-stdin")
            run("env", f"DOCKER_HOST={self.engine.url}", *argv, name, stdin=self.key)
        return folder

    def push(self, local: str, name: str) -> str:
        """Push one of the engine's images as `name`, forget it there, and return its whole name."""
        whole = f"{self.name}/{name}"
        self.engine.docker("tag", local, whole)
        config = str(self.docker_config())
        self.engine.docker("--config", config, "push", "--quiet", whole)
        self.engine.docker("rmi", whole)
        return whole

    def push_small(self, name: str) -> str:
        """Push an image of one empty folder, which costs no compression, as `name`."""
        local = f"lab-{secrets.token_hex(4)}"
        recipe = f"FROM scratch\nLABEL made={local}\nWORKDIR /small\n"
        self.engine.docker("build", "--quiet", "--tag", local, "-", stdin=recipe)
        whole = self.push(local, name)
        self.engine.docker("rmi", local)
        return whole


@contextmanager
def running_registry(
    engine: Engine, address: str = "127.0.0.1", certificate: Path | None = None
) -> Iterator[Registry]:
    """Give a registry of this run alone."""
    with private_folder("registry") as folder:
        registry = Registry(engine, folder, address, certificate)
        process = registry.start()
        try:
            yield registry
        finally:
            process.terminate()
            process.wait(PATIENCE)


@contextmanager
def unlocked_keychain(laptop: Laptop) -> Iterator[None]:
    """Give a laptop a session bus with a real Secret Service, which is unlocked."""
    bus = f"unix:path={laptop.folder}/bus"
    laptop.environment["DBUS_SESSION_BUS_ADDRESS"] = bus
    environment = {"PATH": "/usr/bin:/bin", **laptop.environment}
    start = ("dbus-daemon", "--session", "--nofork", f"--address={bus}")
    daemon = subprocess.Popen(start, env=environment)
    try:
        wait_until((laptop.folder / "bus").exists, "the session bus")
        keyring = ("gnome-keyring-daemon", "--foreground", "--unlock", "--components=secrets")
        with subprocess.Popen(
            keyring, env=environment, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL
        ) as service:
            assert service.stdin is not None
            service.stdin.write(b"pw")
            service.stdin.close()
            wait_until(lambda: has_secret_service(laptop), "the Secret Service")
            yield
            service.terminate()
    finally:
        del laptop.environment["DBUS_SESSION_BUS_ADDRESS"]
        daemon.terminate()
        daemon.wait(PATIENCE)


def has_secret_service(laptop: Laptop) -> bool:
    """Return whether a secret service is on the laptop's bus."""
    call = ("dbus-send", "--session", "--dest=org.freedesktop.DBus", "--print-reply", "/")
    asked = laptop.run(*call, "org.freedesktop.DBus.NameHasOwner", "string:org.freedesktop.secrets")
    return "true" in asked.stdout


def missing_programs() -> list[str]:
    """Return which of the programs that these parts need are not installed."""
    needed = ("docker-registry", "htpasswd", "dbus-daemon", "gnome-keyring-daemon")
    return [f"`{name}` is not installed" for name in needed if not shutil.which(name)]


def login_words(name: str, *more: str, host: str = "lab", user: str = USER) -> tuple[str, ...]:
    """Return the words of a login at a registry whose key comes on stdin."""
    return ("image", "login", host, name, "--username", user, "--password-stdin", *more)


def log_in(laptop: Laptop, registry: Registry, *names: str, host: str = "lab") -> None:
    for name in names or (registry.name,):
        done = laptop.jlr(*login_words(name, "--json", host=host), stdin=registry.key)
        assert done.status == 0, done
        assert json.loads(done.stdout)["registry"] == name


def has(engine: Engine, image: str) -> bool:
    return engine.try_docker("image", "inspect", image).status == 0


def commands(account: Account) -> list[str]:
    """Return the command lines of the remote user's processes."""
    return [" ".join(words) for words in account.command_lines()]


def keys_on_host(account: Account) -> list[str]:
    """Return the files with keys that are on the host now."""
    found = (*account.home.glob("**/config.json"), *Path("/tmp").glob("tmp.*/config.json"))
    mine = []
    for path in found:
        with suppress(FileNotFoundError):
            if path.owner() == account.name:
                mine.append(str(path))
    return mine
