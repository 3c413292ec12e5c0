"""Keys of registries in a keychain, and names that people type for registries."""

from __future__ import annotations

import base64
import json
from pathlib import Path

import pytest

from jlremote.errors import JlrError, Usage
from jlremote.images.stories import login, registry_keys
from jlremote.images.stories.login import LoginRequest
from jlremote.images.stories.registry_keys import RegistryKey
from jlremote.laptop import registry_logins, secrets

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
def backend(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Backend:
    backend = Backend()
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    monkeypatch.setattr(secrets, "_backend", lambda: backend)
    return backend


def test_a_kept_key_is_found_for_its_host_and_no_other(backend: Backend) -> None:
    assert registry_keys.keep("lab", "nvcr.io", KEY) == "test keychain"
    assert registry_keys.find("lab", ("nvcr.io", "docker.io")) == {"nvcr.io": KEY}
    assert registry_keys.find("other", ("nvcr.io",)) == {}


def test_a_keychain_is_asked_in_vain_only_once(
    backend: Backend, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert registry_keys.find("lab", ("nvcr.io",)) == {}
    opened: list[bool] = []
    monkeypatch.setattr(secrets, "_backend", lambda: opened.append(True))
    assert registry_keys.begin("lab", ("nvcr.io",)) is None
    assert registry_keys.find("lab", ("nvcr.io",)) == {}
    assert not opened
    begun = registry_keys.begin("lab", ("docker.io", "nvcr.io"))
    assert registry_keys.find("lab", ("docker.io", "nvcr.io"), begun) == {}
    assert opened == [True]


def test_a_missing_keychain_is_looked_for_once_unless_it_had_the_key(
    backend: Backend, monkeypatch: pytest.MonkeyPatch
) -> None:
    registry_keys.keep("lab", "nvcr.io", KEY)
    with monkeypatch.context() as meanwhile:
        meanwhile.setattr(secrets, "_backend", lambda: None)
        assert registry_keys.find("lab", ("nvcr.io", "docker.io")) == {}
    assert registry_keys.begin("lab", ("docker.io",)) is None
    assert registry_keys.find("lab", ("nvcr.io",)) == {"nvcr.io": KEY}


def test_a_keychain_that_did_not_open_is_tried_again(
    backend: Backend, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails() -> None:
        raise OSError("no bus")

    with monkeypatch.context() as meanwhile:
        meanwhile.setattr(secrets, "_backend", fails)
        assert registry_keys.find("lab", ("nvcr.io",)) == {}
    assert registry_logins.may_be_kept("nvcr.io", "lab")


def test_a_key_is_found_that_was_kept_before_anything_was_noted(
    backend: Backend, tmp_path: Path
) -> None:
    registry_keys.keep("lab", "nvcr.io", KEY)
    (file,) = tmp_path.rglob("registries/*.json")
    file.unlink()
    assert registry_keys.find("lab", ("nvcr.io",)) == {"nvcr.io": KEY}
    assert "s:e:cret" not in file.read_text()
    assert file.stat().st_mode & 0o077 == 0
    registry_keys.forget("lab", "nvcr.io")
    assert registry_keys.begin("lab", ("nvcr.io",)) is None


def test_a_keychain_that_does_not_answer_is_asked_again(
    backend: Backend, monkeypatch: pytest.MonkeyPatch
) -> None:
    registry_keys.keep("lab", "nvcr.io", KEY)

    def locked(*_: str) -> None:
        raise OSError("locked")

    with monkeypatch.context() as meanwhile:
        meanwhile.setattr(backend, "get_password", locked)
        assert registry_keys.find("lab", ("nvcr.io", "docker.io")) == {}
    assert registry_logins.may_be_kept("docker.io", "lab")
    assert registry_keys.find("lab", ("nvcr.io",)) == {"nvcr.io": KEY}


def test_the_latest_key_of_a_user_is_known_for_any_host(backend: Backend) -> None:
    registry_keys.keep("lab", "nvcr.io", KEY)
    assert registry_keys.latest("nvcr.io", "ada") == KEY
    assert registry_keys.latest("nvcr.io", "bob") is None
    assert registry_keys.latest("docker.io", "ada") is None


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
