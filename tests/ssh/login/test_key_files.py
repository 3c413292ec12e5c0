"""Private keys in files: their public half, their decryption and their signatures."""

from __future__ import annotations

import base64
from pathlib import Path

import pytest
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import dsa, ec, ed25519, padding, rsa
from cryptography.hazmat.primitives.asymmetric.utils import encode_dss_signature
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    KeySerializationEncryption,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
)

from jlremote.ssh.login.key_files import (
    PassphraseNeeded,
    PrivateKey,
    UnusableKey,
    exists,
    load,
    public_half,
    read_public,
    sign,
)
from jlremote.ssh.trust.host_certificates import public_blob
from jlremote.ssh.wire_format import key_type, take_string

DATA = b"what is signed"
RSA = rsa.generate_private_key(65537, 2048)
ED25519 = ed25519.Ed25519PrivateKey.generate()
ECDSA = ec.generate_private_key(ec.SECP384R1())


def write(
    path: Path,
    key: PrivateKey,
    form: PrivateFormat = PrivateFormat.OpenSSH,
    encryption: KeySerializationEncryption | None = None,
) -> Path:
    path.write_bytes(key.private_bytes(Encoding.PEM, form, encryption or NoEncryption()))
    path.chmod(0o600)
    return path


def test_the_public_half_of_an_encrypted_key_is_in_its_own_file(tmp_path: Path) -> None:
    path = write(tmp_path / "id", ED25519, encryption=BestAvailableEncryption(b"pass"))
    assert public_half(path) == public_blob(ED25519.public_key())
    with pytest.raises(PassphraseNeeded, match="is encrypted"):
        load(path, None)
    with pytest.raises(PassphraseNeeded, match=r"passphrase of .* is wrong"):
        load(path, "guess")
    assert public_blob(load(path, "pass").public_key()) == public_blob(ED25519.public_key())


def test_the_public_half_of_an_older_format_is_in_the_pub_file(tmp_path: Path) -> None:
    path = write(tmp_path / "id", RSA, PrivateFormat.PKCS8)
    assert exists(path)
    assert public_half(path) is None
    line = RSA.public_key().public_bytes(Encoding.OpenSSH, PublicFormat.OpenSSH)
    (tmp_path / "id.pub").write_bytes(line + b" me@laptop\n")
    assert public_half(path) == public_blob(RSA.public_key())
    assert read_public(tmp_path / "id.pub") == public_blob(RSA.public_key())


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
    path = tmp_path / "id"
    path.write_bytes(content)
    path.chmod(0o600)
    assert public_half(path) is None
    with pytest.raises(UnusableKey, match="is not a private key that can be read"):
        load(path, None)


def test_a_dsa_key_is_of_an_unsupported_kind(tmp_path: Path) -> None:
    path = tmp_path / "id"
    key = dsa.generate_private_key(1024)
    path.write_bytes(key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
    path.chmod(0o600)
    with pytest.raises(UnusableKey, match="unsupported kind"):
        load(path, None)


def test_signatures_have_the_wires_format() -> None:
    name, rest = take_string(sign(ED25519, DATA, "ssh-ed25519-cert-v01@openssh.com"))
    assert name == b"ssh-ed25519"
    ED25519.public_key().verify(take_string(rest)[0], DATA)


@pytest.mark.parametrize("name", ["rsa-sha2-256", "rsa-sha2-512"])
def test_an_rsa_signature_uses_the_hash_that_was_agreed(name: str) -> None:
    kind, rest = take_string(sign(RSA, DATA, name))
    assert kind == name.encode()
    hashed = hashes.SHA256() if name.endswith("256") else hashes.SHA512()
    RSA.public_key().verify(take_string(rest)[0], DATA, padding.PKCS1v15(), hashed)


def test_an_ecdsa_signature_is_two_numbers() -> None:
    key = ECDSA
    body = take_string(take_string(sign(key, DATA, "ecdsa-sha2-nistp384"))[1])[0]
    r, rest = take_string(body)
    s, rest = take_string(rest)
    assert rest == b""
    signature = encode_dss_signature(int.from_bytes(r, "big"), int.from_bytes(s, "big"))
    key.public_key().verify(signature, DATA, ec.ECDSA(hashes.SHA384()))


def test_a_public_blob_names_its_type() -> None:
    assert key_type(public_blob(RSA.public_key())) == "ssh-rsa"
    line = RSA.public_key().public_bytes(Encoding.OpenSSH, PublicFormat.OpenSSH)
    assert base64.b64encode(public_blob(RSA.public_key())) == line.split()[1]
