"""The keychain: backends that lie, hang, fail or are none; `login` has a real one."""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import keyring
import pytest
from keyring.backends import fail, null

from jlremote.laptop.secrets import Secrets, is_real, open_secrets
from tests.lab.programs import PATIENCE, load

REPOSITORY = Path(__file__).parents[2]


class Memory:
    """A backend that behaves; the others differ from it in one thing.

    None has keyring's own base class, by which keyring would find it and use it in other tests.
    """

    priority = 5

    def __init__(self) -> None:
        self.kept: dict[tuple[str, str], str] = {}

    def get_password(self, service: str, username: str) -> str | None:
        return self.kept.get((service, username))

    def set_password(self, service: str, username: str, password: str) -> None:
        self.kept[service, username] = password

    def delete_password(self, service: str, username: str) -> None:
        del self.kept[service, username]


class Forgetful(Memory):
    def set_password(self, service: str, username: str, password: str) -> None:
        """Take the secret and lose it, as a full keychain does."""


class Failing(Memory):
    def get_password(self, service: str, username: str) -> str | None:
        raise RuntimeError("locked")

    set_password = delete_password = get_password  # type: ignore[assignment]


class Hanging(Memory):
    def __init__(self) -> None:
        super().__init__()
        self.calls = 0
        self.released = threading.Event()

    def get_password(self, service: str, username: str) -> str | None:
        self.calls += 1
        self.released.wait(PATIENCE)
        return "late"


@pytest.fixture
def hanging() -> Iterator[Hanging]:
    backend = Hanging()
    yield backend
    backend.released.set()


def test_a_secret_that_cannot_be_read_back_is_not_reported_as_kept() -> None:
    assert not Secrets(Forgetful()).set("account", "secret")


def test_a_failing_keychain_is_treated_as_none() -> None:
    secrets = Secrets(Failing())
    assert secrets.get("account") is None
    assert not secrets.present
    assert not secrets.set("account", "secret")
    assert not secrets.delete("account")


def test_a_locked_keychain_costs_its_deadline_once_and_is_used_again_when_it_answers(
    hanging: Hanging,
) -> None:
    secrets = Secrets(hanging, deadline=0.2)
    began = time.monotonic()
    assert [secrets.get("account") for _ in range(20)] == [None] * 20
    assert time.monotonic() - began < 2 * load()
    assert hanging.calls == 1
    assert not secrets.present
    hanging.released.set()
    deadline = time.monotonic() + 5
    while secrets.get("account") != "late":
        assert time.monotonic() < deadline
    assert secrets.present


def test_nothing_shows_a_secret() -> None:
    backend = Memory()
    secrets = Secrets(backend)
    secrets.set("account", "correct horse")
    assert "correct horse" not in repr(secrets) + repr(vars(secrets))


Plaintext = type("PlaintextKeyring", (Memory,), {"__module__": "keyrings.alt.file"})
Weak = type("Weak", (Memory,), {"priority": 0.5})


@pytest.mark.parametrize("backend", [Memory, fail.Keyring, null.Keyring, Plaintext, Weak])
def test_only_real_keychains_count(backend: Callable[[], Any]) -> None:
    assert is_real(backend()) is (backend is Memory)


def test_of_several_backends_the_first_real_one_is_used(monkeypatch: pytest.MonkeyPatch) -> None:
    several = type("Several", (), {"backends": [Plaintext(), Memory()]})()
    monkeypatch.setattr(keyring, "get_keyring", lambda: several)
    found = open_secrets()
    assert found is not None
    assert "Memory" in found.name
    monkeypatch.setattr(keyring, "get_keyring", fail.Keyring)
    assert open_secrets() is None


def test_opening_a_keychain_starts_no_program() -> None:
    program = """if True:
        import sys
        from jlremote.laptop.secrets import open_secrets
        started = []
        def note(event, arguments):
            if event in {"subprocess.Popen", "os.posix_spawn", "os.system"}:
                started.append(arguments[0])
        sys.addaudithook(note)
        open_secrets()
        print(started, "keyring.backends" in sys.modules)
    """
    argv = (sys.executable, "-c", program)
    ran = subprocess.run(argv, cwd=REPOSITORY, capture_output=True, text=True, check=True)
    assert ran.stdout.split("\n")[0] == "[] True"
