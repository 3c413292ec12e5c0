"""The keys to offer: from files and agents, in the order of ssh."""

from __future__ import annotations

from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric import dsa
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
)

from jlremote.ssh.login.key_files import (
    UnusableKey,
    load,
    public_half,
)


def private(path: Path, content: bytes) -> Path:
    path.write_bytes(content)
    path.chmod(0o600)
    return path


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
