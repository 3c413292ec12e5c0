"""The keys to offer: from files and agents, in the order of ssh."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric import dsa, ec, ed25519
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
)

from jlremote.ssh.config.rules import LoginRules
from jlremote.ssh.login.agent import Agent
from jlremote.ssh.login.identities import Identity, agent_of, algorithms_for, gather
from jlremote.ssh.login.key_files import (
    PassphraseNeeded,
    UnusableKey,
    exists,
    load,
    public_half,
)
from jlremote.ssh.trust.host_certificates import public_blob
from jlremote.ssh.wire_format import string
from tests.ssh.certificates import certificate, new_key, public_line, wire_blob

CERT = "-cert-v01@openssh.com"


class Held:
    """An agent that holds keys."""

    def __init__(self, *blobs: bytes) -> None:
        self._keys = {blob: f"comment {number}" for number, blob in enumerate(blobs)}

    def keys(self) -> dict[bytes, str]:
        return self._keys


def offered(rules: LoginRules, agent: Any = None) -> list[tuple[str, bool]]:
    """Return the label of each identity, and whether the agent signs for it."""
    return [(one.label, one.agent is not None) for one in gather(rules, agent)]


def key_file(path: Path) -> tuple[Path, bytes]:
    key = new_key()
    path.with_name(f"{path.name}.pub").write_bytes(public_line(key))
    return path, wire_blob(key)


def test_keys_of_the_agent_come_before_files_and_listed_ones_first(tmp_path: Path) -> None:
    one, one_blob = key_file(tmp_path / "one")
    two, _ = key_file(tmp_path / "two")
    stranger = wire_blob(new_key())
    agent = Held(stranger, one_blob)
    assert offered(LoginRules(identity_files=(two, one)), agent) == [
        (str(one), True),
        ("comment 0", True),
        (str(two), False),
    ]
    only = LoginRules(identity_files=(two, one), identities_only=True)
    assert offered(only, agent) == [(str(one), True), (str(two), False)]


def test_a_file_whose_public_half_is_encrypted_is_offered_without_a_blob(tmp_path: Path) -> None:
    path = tmp_path / "id"
    path.write_text("-----BEGIN RSA PRIVATE KEY-----\n")
    assert gather(LoginRules(identity_files=(path, path)), None) == (
        Identity(None, str(path), path=path),
        Identity(None, str(path), path=path),
    )


def test_a_key_is_offered_once(tmp_path: Path) -> None:
    path, blob = key_file(tmp_path / "id")
    twice = LoginRules(identity_files=(path, path))
    assert offered(twice) == [(str(path), False)]
    assert offered(twice, Held(blob, blob)) == [(str(path), True)]


def test_a_certificate_beside_its_key_is_offered_after_it(tmp_path: Path) -> None:
    key = new_key()
    path = tmp_path / "id"
    (tmp_path / "id.pub").write_bytes(public_line(key))
    (tmp_path / "id-cert.pub").write_bytes(certificate(key, new_key()))
    rules = LoginRules(identity_files=(path,))
    assert offered(rules) == [(str(path), False), (f"{path}-cert.pub", False)]
    assert offered(rules, Held(wire_blob(key))) == [(str(path), True), (f"{path}-cert.pub", True)]


def test_a_certificate_file_comes_first_if_its_key_is_known(tmp_path: Path) -> None:
    key = new_key()
    path, cert = tmp_path / "id", tmp_path / "cert.pub"
    cert.write_bytes(certificate(key, new_key()))
    alone = LoginRules(certificate_files=(cert,))
    assert offered(alone) == []
    assert offered(alone, Held(wire_blob(key))) == [(str(cert), True), ("comment 0", True)]
    (tmp_path / "id.pub").write_bytes(public_line(key))
    both = LoginRules(certificate_files=(cert,), identity_files=(path,))
    assert offered(both) == [(str(cert), False), (str(path), False)]
    assert gather(both, None)[0].path == path


def test_a_certificate_file_with_a_bare_key_is_left_out(tmp_path: Path) -> None:
    path, _ = key_file(tmp_path / "id")
    rules = LoginRules(certificate_files=(tmp_path / "id.pub", tmp_path / "none"))
    assert gather(rules, None) == ()
    assert path.name == "id"


@pytest.mark.parametrize(
    ("kind", "accepted", "server", "expected"),
    [
        ("ssh-ed25519", None, None, "ssh-ed25519"),
        ("ssh-ed25519", ("rsa-sha2-512",), None, None),
        ("ssh-ed25519", None, ("rsa-sha2-512",), "ssh-ed25519"),
        ("ssh-rsa", None, None, "rsa-sha2-512"),
        ("ssh-rsa", ("rsa-sha2-256",), None, "rsa-sha2-256"),
        ("ssh-rsa", None, ("rsa-sha2-256",), "rsa-sha2-256"),
        ("ssh-rsa", None, ("ssh-rsa",), None),
        (f"ssh-rsa{CERT}", None, None, f"rsa-sha2-512{CERT}"),
        (f"ssh-rsa{CERT}", None, ("rsa-sha2-256",), f"rsa-sha2-256{CERT}"),
        ("ssh-dss", None, None, None),
    ],
)
def test_a_key_is_signed_with_the_best_algorithm_of_both_sides(
    kind: str, accepted: tuple[str, ...] | None, server: tuple[str, ...] | None, expected: str
) -> None:
    assert algorithms_for(string(kind.encode()), accepted, server) == expected


@pytest.mark.parametrize(
    ("named", "expected"),
    [
        (None, "/shell"),
        ("SSH_AUTH_SOCK", "/shell"),
        ("none", None),
        ("$OTHER", "/other"),
        ("${OTHER}", "/other"),
        ("$UNSET", None),
        ("/run/agent", "/run/agent"),
    ],
)
def test_the_agent_is_the_one_that_the_config_names(
    named: str | None, expected: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OTHER", "/other")
    monkeypatch.delenv("UNSET", raising=False)
    agent = agent_of(LoginRules(identity_agent=named), "/shell")
    assert agent == (Agent(expected) if expected else None)


ED25519 = ed25519.Ed25519PrivateKey.generate()
ECDSA = ec.generate_private_key(ec.SECP384R1())


def private(path: Path, content: bytes) -> Path:
    path.write_bytes(content)
    path.chmod(0o600)
    return path


def test_the_public_half_of_an_encrypted_key_is_in_its_own_file(tmp_path: Path) -> None:
    encryption = BestAvailableEncryption(b"pass")
    content = ED25519.private_bytes(Encoding.PEM, PrivateFormat.OpenSSH, encryption)
    path, public = private(tmp_path / "id", content), public_blob(ED25519.public_key())
    assert public_half(path) == public
    with pytest.raises(PassphraseNeeded, match="is encrypted"):
        load(path, None)
    with pytest.raises(PassphraseNeeded, match=r"passphrase of .* is wrong"):
        load(path, "guess")
    assert public_blob(load(path, "pass").public_key()) == public


def test_a_public_key_without_its_private_half_is_offered_for_an_agent(tmp_path: Path) -> None:
    path = tmp_path / "id"
    assert not exists(path)
    line = ECDSA.public_key().public_bytes(Encoding.OpenSSH, PublicFormat.OpenSSH)
    (tmp_path / "id.pub").write_bytes(line)
    assert exists(path)
    assert public_half(path) == public_blob(ECDSA.public_key())
    with pytest.raises(UnusableKey, match="cannot be read"):
        load(path, None)


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"nonsense",
        b"-----BEGIN OPENSSH PRIVATE KEY-----\nAAAA\n-----END OPENSSH PRIVATE KEY-----\n",
    ],
)
def test_a_broken_file_is_unusable_and_has_no_public_half(content: bytes, tmp_path: Path) -> None:
    path = private(tmp_path / "id", content)
    assert public_half(path) is None
    with pytest.raises(UnusableKey, match="is not a private key that can be read"):
        load(path, None)


def test_a_dsa_key_is_of_an_unsupported_kind(tmp_path: Path) -> None:
    key = dsa.generate_private_key(1024)
    content = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    path = private(tmp_path / "id", content)
    with pytest.raises(UnusableKey, match="unsupported kind"):
        load(path, None)
