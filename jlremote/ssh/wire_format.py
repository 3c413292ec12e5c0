"""Strings, numbers and key blobs in the SSH wire's format (RFC 4251, section 5)."""

from __future__ import annotations

import base64
import binascii
import hashlib
from collections.abc import Sequence


def string(value: bytes) -> bytes:
    """Return a length-prefixed string."""
    return len(value).to_bytes(4, "big") + value


def opening(to: Sequence[str | int]) -> tuple[bytes, bytes]:
    """Return kind and details of the opening of a channel to a host and port, or to a path.

    They are those of RFC 4254, section 7.2, and of section 2.4 of OpenSSH's PROTOCOL.
    """
    place = string(str(to[0]).encode())
    match to[1:]:
        case [int(port)]:
            origin = string(b"127.0.0.1") + bytes(4)
            return b"direct-tcpip", place + port.to_bytes(4, "big") + origin
    return b"direct-streamlocal@openssh.com", place + bytes(8)


def number(value: int) -> bytes:
    """Return a non-negative multiple-precision integer."""
    return string(value.to_bytes(value.bit_length() // 8 + 1, "big") if value else b"")


def take_string(data: bytes) -> tuple[bytes, bytes]:
    """Return the first string of `data` and the rest; `ValueError` if it ends too early."""
    size = int.from_bytes(data[:4], "big")
    if len(data) < 4 + size:
        raise ValueError("an SSH string ends too early")
    return data[4 : 4 + size], data[4 + size :]


def key_type(blob: bytes) -> str:
    """Return the type of a public key's blob, `""` if it has none."""
    try:
        return take_string(blob)[0].decode("ascii")
    except (ValueError, UnicodeDecodeError):
        return ""


def fingerprint(blob: bytes) -> str:
    """Return a public key's fingerprint in OpenSSH's form."""
    digest = base64.b64encode(hashlib.sha256(blob).digest()).decode()
    return f"SHA256:{digest.rstrip('=')}"


def decode_key(text: bytes) -> bytes | None:
    """Return the blob of a base64 public key, `None` if it is not one."""
    try:
        blob = base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        return None
    return blob if key_type(blob) else None
