"""Private keys in files: their public half, their decryption and their signatures."""

from __future__ import annotations

from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric import dsa, ec, ed25519
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
)

from jlremote.ssh.login.key_files import (
    PassphraseNeeded,
    UnusableKey,
    exists,
    load,
    public_half,
)
from jlremote.ssh.trust.host_certificates import public_blob

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
