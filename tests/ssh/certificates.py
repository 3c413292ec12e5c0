"""Keys and certificates made in memory, for tests without a server."""

from __future__ import annotations

import base64
from typing import Any

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from cryptography.hazmat.primitives.serialization.ssh import (
    SSHCertificateBuilder,
    SSHCertificateType,
)

FOREVER = 1 << 40


def new_key() -> Ed25519PrivateKey:
    return Ed25519PrivateKey.generate()


def public_line(key: Ed25519PrivateKey) -> bytes:
    return key.public_key().public_bytes(Encoding.OpenSSH, PublicFormat.OpenSSH)


def wire_blob(key: Ed25519PrivateKey) -> bytes:
    return blob_of(public_line(key))


def blob_of(line: bytes) -> bytes:
    return base64.b64decode(line.split()[1])


def certificate(
    key: Ed25519PrivateKey,
    authority: Ed25519PrivateKey,
    *,
    kind: SSHCertificateType = SSHCertificateType.USER,
    names: tuple[bytes, ...] = (b"me",),
    valid: tuple[int, int] = (0, FOREVER),
    critical: bytes | None = None,
) -> bytes:
    """Return a certificate as a line of a `.pub` file."""
    builder: Any = SSHCertificateBuilder().public_key(key.public_key()).serial(1).type(kind)
    builder = builder.key_id(b"test")
    builder = builder.valid_principals(list(names)) if names else builder.valid_for_all_principals()
    builder = builder.valid_after(valid[0]).valid_before(valid[1])
    if critical is not None:
        builder = builder.add_critical_option(critical, b"")
    line: bytes = builder.sign(authority).public_bytes()
    return line
