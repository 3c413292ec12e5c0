"""Keys of registries in a keychain, and names that people type for registries."""

from __future__ import annotations

import base64
import json
from pathlib import Path

import pytest

from jlremote.errors import JlrError, Usage
from jlremote.images import login, registry_keys
from jlremote.images.login import LoginRequest
from jlremote.images.registry_keys import RegistryKey
from jlremote.laptop import secrets

KEY = RegistryKey("ada", "s:e:cret")


class Backend:
    """A keychain in memory, which may refuse to store."""

    name = "test keychain"

    def __init__(self) -> None:
        self.kept: dict[tuple[str, str], str] = {}
        self.locked = False

    def get_password(self, service: str, account: str) -> str | None:
        return self.kept.get((service, account))

    def set_password(self, service: str, account: str, secret: str) -> None:
        if not self.locked:
            self.kept[service, account] = secret

    def delete_password(self, service: str, account: str) -> None:
        del self.kept[service, account]


@pytest.fixture
def backend(monkeypatch: pytest.MonkeyPatch) -> Backend:
    backend = Backend()
    monkeypatch.setattr(secrets, "_backend", lambda: backend)
    return backend


def test_only_a_login_makes_later_commands_open_the_keychain(
    backend: Backend, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    opened: list[bool] = []
    with monkeypatch.context() as before:
        before.setattr(secrets, "_backend", lambda: opened.append(True))
        assert registry_keys.find("lab", ("nvcr.io",)) == {}
    assert not opened
    registry_keys.keep("lab", "nvcr.io", KEY)
    (record,) = tmp_path.rglob("registries/*.json")
    assert "s:e:cret" not in record.read_text()
    with monkeypatch.context() as meanwhile:
        meanwhile.setattr(secrets, "_backend", lambda: None)
        assert registry_keys.find("lab", ("nvcr.io",)) == {}
    assert registry_keys.find("lab", ("nvcr.io",)) == {"nvcr.io": KEY}
    assert registry_keys.forget("lab", "nvcr.io")
    assert not record.exists()


def test_a_locked_keychain_is_an_error(backend: Backend) -> None:
    backend.locked = True
    with pytest.raises(JlrError, match="the keychain refuses the key") as error:
        registry_keys.keep("lab", "nvcr.io", KEY)
    assert "s:e:cret" not in str(error.value)


def test_docker_reads_the_keys_from_one_line() -> None:
    text = registry_keys.docker_config({"nvcr.io": KEY, "docker.io": RegistryKey("b", "ü")})
    assert text.count(b"\n") == 1
    auths = json.loads(text)["auths"]
    assert base64.b64decode(auths["nvcr.io"]["auth"]) == b"ada:s:e:cret"
    assert base64.b64decode(auths["https://index.docker.io/v1/"]["auth"]) == "b:ü".encode()


def test_a_key_is_not_shown_by_accident() -> None:
    assert "s:e:cret" not in repr(KEY)
    assert "s:e:cret" not in repr(LoginRequest("lab", key="s:e:cret"))


@pytest.mark.parametrize(
    ("typed", "name"),
    [
        ("nvcr.io", "nvcr.io"),
        ("https://nvcr.io/", "nvcr.io"),
        ("http://lab:5000", "lab:5000"),
        ("https://index.docker.io/v1/", "docker.io"),
        ("hub.docker.com", "docker.io"),
        ("docker.io", "docker.io"),
        ("localhost", "localhost"),
    ],
)
def test_a_registry_may_be_copied_as_a_url(typed: str, name: str) -> None:
    assert login._registry(typed) == name


@pytest.mark.parametrize("user", ["", "a:b"])
def test_an_invalid_user_name_is_refused(user: str) -> None:
    with pytest.raises(Usage, match="invalid user name"):
        login._user(LoginRequest("lab", user=user))
