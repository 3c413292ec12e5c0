"""A remote host and a laptop that knows it as `lab`, made of the lab's parts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

from tests.lab.accounts import Account
from tests.lab.engine import Engine
from tests.lab.laptop import Laptop
from tests.lab.place import private_folder
from tests.lab.programs import LESS_GARBAGE
from tests.lab.sshd import SSHServer, make_key

NOTHING_MORE: Mapping[str, str] = MappingProxyType({})


@dataclass(frozen=True)
class Keys:
    """The key pair that every account of the lab accepts."""

    private: Path
    authorized: Path


@contextmanager
def new_keys() -> Iterator[Keys]:
    """Give a key pair that lasts as long as this run."""
    with private_folder("keys") as folder:
        private = make_key(folder / "id_ed25519")
        yield Keys(private, private.with_suffix(".pub"))


@contextmanager
def running_sshd(
    engine: Engine,
    keys: Keys,
    *options: str,
    host_key_kinds: Sequence[str] = ("ed25519", "ecdsa"),
    pam: Sequence[str] = (),
    environment: Mapping[str, str] = NOTHING_MORE,
) -> Iterator[SSHServer]:
    """Give an sshd that leads to the lab's engine; the arguments are those of `SSHServer`."""
    with SSHServer(
        keys.authorized,
        environment={"DOCKER_HOST": engine.url, "GOGC": LESS_GARBAGE, **environment},
        options=options,
        host_key_kinds=host_key_kinds,
        pam=pam,
    ) as server:
        yield server


@contextmanager
def new_laptop(
    server: SSHServer, account: Account, keys: Keys, port: int | None = None
) -> Iterator[Laptop]:
    """Give a laptop that knows the host as `lab`; end what is left of it afterwards."""
    laptop = Laptop()
    try:
        laptop.add_host("lab", server, account, key=keys.private, port=port)
        yield laptop
    finally:
        laptop.stubborn = laptop.shut_down()
        laptop.remove()
