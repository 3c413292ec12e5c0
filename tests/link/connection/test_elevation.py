"""The password of `sudo` is asked for once, tested, and forgotten when it is wrong."""

from __future__ import annotations

import itertools

import pytest

from jlremote.errors import Authentication, NeedsAuthentication
from jlremote.link.connection.elevation import TRIES, Elevation
from jlremote.place.host.contract import OUTPUT_BYTES, SCRIPT_SECONDS, Completed, Steps
from jlremote.place.host.sudo import SUDO, SUDO_IF_KNOWN
from jlremote.place.runtimes.engine.engine_errors import EngineNotPermitted
from jlremote.questions import NeverAsks
from jlremote.ssh.config.destination import Destination
from tests.link.fakes import FakePerson
from tests.login.keychain import MemoryKeychain

SCRIPT = f"{' '.join(SUDO)} docker ps"
LOOKS_UP = f"{' '.join(SUDO_IF_KNOWN)} docker ps"
ADA = "sudo-password ada@dgx"
NEVER = NeverAsks("run it in a terminal")
# A password that was refused is refused in the whole process, so each test has its own.
NUMBERS = itertools.count()


class FakeHost:
    """A host with a `sudo` that takes one password, or wants none."""

    name = "dgx"

    def __init__(self, password: str | None, complaint: str = "sudo: a password is required"):
        self.password = password
        self.complaint = complaint
        self.tried: list[str] = []

    def run(
        self, steps: Steps, *, timeout: float = SCRIPT_SECONDS, limit: int = OUTPUT_BYTES
    ) -> dict[str, Completed]:
        [(name, script)] = steps.items()
        self.tried.append(script)
        right = self.password is None or f" {self.password} |" in script
        return {name: Completed(0, "", "") if right else Completed(1, "", self.complaint)}


@pytest.fixture
def password() -> str:
    return f"correct-horse-{next(NUMBERS)}"


@pytest.fixture
def keychain() -> MemoryKeychain:
    return MemoryKeychain()


@pytest.fixture
def elevation(keychain: MemoryKeychain) -> Elevation:
    return Elevation(lambda: Destination("dgx", "dgx", 22, "ada"), keychain)


def test_a_typed_password_is_tested_and_given_to_every_script_with_sudo(
    elevation: Elevation, password: str
) -> None:
    host, person = FakeHost(password), FakePerson(password)
    for _ in range(2):
        elevation.prepare(host, SCRIPT, person)
    assert [question.kind for question in person.questions] == ["password", "remember"]
    assert "ada@dgx" in person.questions[0].text
    assert len(host.tried) == 2  # without a password, and with it
    for script in (SCRIPT, LOOKS_UP):
        assert elevation.password_for(script.encode()) == password
    assert elevation.password_for(b"docker ps") is None


def test_a_wrong_password_is_not_tried_twice(elevation: Elevation, password: str) -> None:
    host, person = FakeHost(password), FakePerson(f"not-{password}")
    with pytest.raises(Authentication, match="`sudo` refused every password") as refused:
        elevation.prepare(host, SCRIPT, person)
    assert len(person.questions) == TRIES
    assert len(host.tried) == 2
    assert "login password" in (refused.value.hint or "")
    assert elevation.password_for(SCRIPT.encode()) is None


def test_without_any_password_the_error_says_what_else_would_do(
    elevation: Elevation, password: str
) -> None:
    with pytest.raises(NeedsAuthentication, match="jlr cannot ask: password of ada@dgx") as asked:
        elevation.prepare(FakeHost(password), SCRIPT, NEVER)
    assert (asked.value.hint or "").startswith("run it in a terminal; or ")


def test_a_user_whom_sudo_refuses_after_the_password_is_told_so(
    elevation: Elevation, password: str
) -> None:
    host = FakeHost("none")
    host_run = host.run

    def run(steps: Steps, *, timeout: float = 0, limit: int = 0) -> dict[str, Completed]:
        if host.tried:
            host.complaint = "ada is not allowed to execute '/usr/bin/docker' as root on dgx."
        return host_run(steps)

    host.run = run  # type: ignore[method-assign]
    with pytest.raises(EngineNotPermitted):
        elevation.prepare(host, SCRIPT, FakePerson(password))


def test_a_password_that_is_wrong_by_now_is_dropped_everywhere(
    elevation: Elevation, keychain: MemoryKeychain, password: str
) -> None:
    keychain.set(ADA, password)
    elevation.prepare(FakeHost(password), SCRIPT, NEVER)
    elevation.refused()
    person = FakePerson(f"new-{password}")
    elevation.prepare(FakeHost(f"new-{password}"), SCRIPT, person)
    assert keychain.get(ADA) != password
    assert elevation.password_for(SCRIPT.encode()) == f"new-{password}"


def test_a_log_with_the_words_of_sudo_does_not_revoke_the_right_password(
    elevation: Elevation, keychain: MemoryKeychain, password: str
) -> None:
    """`jlr logs` of a container that prints `sudo: 3 incorrect password attempts`."""
    keychain.set(ADA, password)
    host = FakeHost(password)
    elevation.prepare(host, SCRIPT, NEVER)
    for _ in range(2):
        elevation.refused()
        elevation.prepare(host, SCRIPT, NEVER)
    assert elevation.password_for(SCRIPT.encode()) == password
    assert keychain.get(ADA) == password
    tried = len(host.tried)
    elevation.prepare(host, SCRIPT, NEVER)
    assert len(host.tried) == tried, "it is tested once for each doubt"


def test_a_mere_look_uses_the_keychain_once_and_never_asks(
    elevation: Elevation, keychain: MemoryKeychain, password: str
) -> None:
    host, person = FakeHost(password), FakePerson(password)
    for _ in range(2):
        elevation.prepare(host, LOOKS_UP, person)
    assert (person.questions, len(host.tried)) == ([], 1)
    keychain.set(ADA, password)
    elevation.refused()
    elevation.prepare(host, LOOKS_UP, person)
    assert elevation.password_for(LOOKS_UP.encode()) == password
