"""Private keys in files: what is public about them without a passphrase, and their signatures."""

from __future__ import annotations

import base64
import os
import re
import shlex
import stat
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, padding, rsa
from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    PublicFormat,
    load_pem_private_key,
    load_ssh_private_key,
)

from jlremote.ssh.wire_format import decode_key, number, string, take_string

PrivateKey = ed25519.Ed25519PrivateKey | ec.EllipticCurvePrivateKey | rsa.RSAPrivateKey

_OPENSSH = b"openssh-key-v1\0"
_ARMOUR = re.compile(rb"-----BEGIN ([A-Z ]+)-----(.*?)-----END", re.DOTALL)
_RSA_HASHES: dict[str, Callable[[], hashes.HashAlgorithm]] = {
    "rsa-sha2-256": hashes.SHA256,
    "rsa-sha2-512": hashes.SHA512,
}
_CURVE_HASHES: dict[int, Callable[[], hashes.HashAlgorithm]] = {
    256: hashes.SHA256,
    384: hashes.SHA384,
    521: hashes.SHA512,
}


class UnusableKey(Exception):
    """A key file that cannot be used; the message says why."""


class PassphraseNeeded(UnusableKey):
    """The key is encrypted, and no passphrase or a wrong one was given."""


@dataclass(frozen=True)
class KeyFile:
    """A private key's file.

    Attributes:
        path: where it is.
        public: its public blob, `None` where the key must be decrypted to know it.
    """

    path: Path
    public: bytes | None


def find(path: Path) -> KeyFile | None:
    """Return what a file tells without a passphrase, `None` where there is no such file.

    As in ssh the public half comes from the file itself or from `FILE.pub`, and the file may be
    only a public key, whose private half an agent holds.
    """
    public_file = path.with_name(path.name + ".pub")
    if not path.exists() and not public_file.exists():
        return None
    for candidate, read in ((path, _embedded), (path, _public_line), (public_file, _public_line)):
        public = _attempt(read, candidate)
        if public is not None:
            return KeyFile(path, public)
    return KeyFile(path, None)


def read_public(path: Path) -> bytes | None:
    """Return the key or certificate in a `.pub` file, `None` where there is none."""
    return _attempt(_public_line, path)


def load(path: Path, passphrase: str | None) -> PrivateKey:
    """Return the private key in a file.

    Raises:
        PassphraseNeeded: it is encrypted and `passphrase` is not the right one.
        UnusableKey: it is missing, open to others, broken or of a type that is not supported.
    """
    _check_private(path)
    secret = passphrase.encode() if passphrase else None
    try:
        content = path.read_bytes()
        loader = load_ssh_private_key if b"OPENSSH PRIVATE KEY" in content else load_pem_private_key
        key = loader(content, secret)
    except TypeError:
        # cryptography's way to say that the key is encrypted, or that it is not.
        if secret is not None:
            return load(path, None)
        raise PassphraseNeeded(f"`{path}` is encrypted") from None
    except UnsupportedAlgorithm as error:
        raise UnusableKey(f"`{path}` is of a kind that is not supported: {error}") from error
    except OSError as error:
        raise UnusableKey(f"`{path}` cannot be read: {error.strerror}") from error
    except ValueError as error:
        if secret is not None:
            raise PassphraseNeeded(f"the passphrase of `{path}` is wrong") from error
        raise UnusableKey(f"`{path}` is not a private key that can be read") from error
    if not isinstance(key, PrivateKey):
        raise UnusableKey(f"`{path}` is of a kind that is not supported")
    return key


def public_blob(key: PrivateKey) -> bytes:
    """Return the public half as it goes over the wire."""
    line = key.public_key().public_bytes(Encoding.OpenSSH, PublicFormat.OpenSSH)
    return base64.b64decode(line.split()[1])


def sign(key: PrivateKey, data: bytes, algorithm: str) -> bytes:
    """Return the signature blob of RFC 4253, 5656, 8332 or 8709."""
    name = algorithm.removesuffix("-cert-v01@openssh.com")
    if isinstance(key, rsa.RSAPrivateKey):
        signature = key.sign(data, padding.PKCS1v15(), _RSA_HASHES[name]())
    elif isinstance(key, ec.EllipticCurvePrivateKey):
        hashed = _CURVE_HASHES[key.curve.key_size]()
        r, s = decode_dss_signature(key.sign(data, ec.ECDSA(hashed)))
        signature = number(r) + number(s)
    else:
        signature = key.sign(data)
    return string(name.encode()) + string(signature)


def _check_private(path: Path) -> None:
    """Refuse a key that others may read, as ssh does."""
    try:
        found = path.stat()
    except OSError as error:
        raise UnusableKey(f"`{path}` cannot be read: {error.strerror}") from error
    if sys.platform != "win32" and found.st_uid == os.getuid() and found.st_mode & 0o077:
        mode = stat.S_IMODE(found.st_mode)
        mend = f"chmod 600 {shlex.quote(str(path))}"
        raise UnusableKey(f"others may read `{path}` (mode {mode:04o}): `{mend}`")


def _attempt(read: Callable[[Path], bytes | None], path: Path) -> bytes | None:
    try:
        return read(path)
    except (OSError, ValueError):
        return None


def _embedded(path: Path) -> bytes | None:
    armour = _ARMOUR.search(path.read_bytes())
    if armour is None or armour[1] != b"OPENSSH PRIVATE KEY":
        return None
    content = base64.b64decode(armour[2])
    if not content.startswith(_OPENSSH):
        return None
    rest = content[len(_OPENSSH) :]
    for _ in range(3):  # cipher, key derivation, its options
        _, rest = take_string(rest)
    return take_string(rest[4:])[0]


def _public_line(path: Path) -> bytes | None:
    fields = path.read_bytes().split()
    return decode_key(fields[1]) if len(fields) >= 2 else None
