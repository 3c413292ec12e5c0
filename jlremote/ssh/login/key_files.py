"""Private keys in files: their public half, their decryption and their signatures."""

from __future__ import annotations

import base64
import os
import re
import shlex
import stat
import sys
from collections.abc import Callable
from pathlib import Path

from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, padding, rsa
from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature
from cryptography.hazmat.primitives.serialization import load_pem_private_key, load_ssh_private_key

from jlremote.ssh.wire_format import decode_key, number, string, take_string
from jlremote.text import reason_of

PrivateKey = ed25519.Ed25519PrivateKey | ec.EllipticCurvePrivateKey | rsa.RSAPrivateKey

_OPENSSH = b"openssh-key-v1\0"
_ARMOUR = re.compile(rb"-----BEGIN ([A-Z ]+)-----(.*?)-----END", re.DOTALL)
_RSA_HASHES = {"rsa-sha2-256": hashes.SHA256(), "rsa-sha2-512": hashes.SHA512()}
_CURVE_HASHES = {256: hashes.SHA256(), 384: hashes.SHA384(), 521: hashes.SHA512()}


class UnusableKey(Exception):
    """A key file is of no use; the message says why."""


class PassphraseNeeded(UnusableKey):
    """A key is encrypted, and no passphrase or a wrong one was given."""


def exists(path: Path) -> bool:
    """Return whether a private key's file or its `FILE.pub` exists."""
    return path.exists() or _public_file(path).exists()


def public_half(path: Path) -> bytes | None:
    """Return the public blob of a key's file, `None` where the key must be decrypted first.

    As in ssh it comes from the file itself or from `FILE.pub`, and the file may hold only a public
    key, whose private half an agent holds.
    """
    candidates = ((path, _embedded), (path, _public_line), (_public_file(path), _public_line))
    return next((blob for file, read in candidates if (blob := _attempt(read, file))), None)


def read_public(path: Path) -> bytes | None:
    """Return the key or certificate in a `.pub` file, `None` if there is none."""
    return _attempt(_public_line, path)


def load(path: Path, passphrase: str | None) -> PrivateKey:
    """Return the private key in a file.

    Raises:
        PassphraseNeeded: it is encrypted and `passphrase` is not the right one.
        UnusableKey: it is missing, readable by others, broken or of an unsupported type.
    """
    _check_private(path)
    secret = passphrase.encode() if passphrase else None
    try:
        content = path.read_bytes()
        loader = load_ssh_private_key if b"OPENSSH PRIVATE KEY" in content else load_pem_private_key
        key = loader(content, secret)
    except TypeError:
        # cryptography raises this when the key is encrypted, or when it is not.
        if secret is not None:
            return load(path, None)
        raise PassphraseNeeded(f"`{path}` is encrypted") from None
    except UnsupportedAlgorithm as error:
        raise UnusableKey(f"`{path}` is of an unsupported kind: {error}") from error
    except OSError as error:
        raise UnusableKey(f"`{path}` cannot be read: {reason_of(error)}") from error
    except ValueError as error:
        if secret is not None:
            raise PassphraseNeeded(f"the passphrase of `{path}` is wrong") from error
        raise UnusableKey(f"`{path}` is not a private key that can be read") from error
    if not isinstance(key, PrivateKey):
        raise UnusableKey(f"`{path}` is of an unsupported kind")
    return key


def sign(key: PrivateKey, data: bytes, algorithm: str) -> bytes:
    """Return a signature blob (RFC 4253, 5656, 8332 or 8709)."""
    name = algorithm.removesuffix("-cert-v01@openssh.com")
    if isinstance(key, rsa.RSAPrivateKey):
        signature = key.sign(data, padding.PKCS1v15(), _RSA_HASHES[name])
    elif isinstance(key, ec.EllipticCurvePrivateKey):
        digest = ec.ECDSA(_CURVE_HASHES[key.curve.key_size])
        r, s = decode_dss_signature(key.sign(data, digest))
        signature = number(r) + number(s)
    else:
        signature = key.sign(data)
    return string(name.encode()) + string(signature)


def _check_private(path: Path) -> None:
    try:
        status = path.stat()
    except OSError as error:
        raise UnusableKey(f"`{path}` cannot be read: {reason_of(error)}") from error
    if sys.platform != "win32" and status.st_uid == os.getuid() and status.st_mode & 0o077:
        mode = stat.S_IMODE(status.st_mode)
        mend = f"chmod 600 {shlex.quote(str(path))}"
        raise UnusableKey(f"other users may read `{path}` (mode {mode:04o}): `{mend}`")


def _public_file(path: Path) -> Path:
    return path.with_name(f"{path.name}.pub")


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
