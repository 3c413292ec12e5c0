"""known_hosts files as sshd(8) describes them: reading, matching names, appending.

paramiko's reader is not used: one odd line aborts its whole load, it knows neither wildcards nor
markers, and it rewrites the file without its comments.
"""

from __future__ import annotations

import base64
import fnmatch
import hashlib
import hmac
import logging
import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from jlremote.ssh.wire_format import decode_key, key_type

Marker = Literal["", "@revoked", "@cert-authority"]

_LOG = logging.getLogger("jlremote.ssh")
_MARKERS: dict[bytes, Marker] = {b"@revoked": "@revoked", b"@cert-authority": "@cert-authority"}
_HASH_MAGIC = "|1|"


@dataclass(frozen=True)
class KnownKey:
    """One line of a known_hosts file.

    `line` is its number, from 1; `names` are comma-separated patterns, or one hashed name.
    """

    path: Path
    line: int
    marker: Marker
    names: str
    blob: bytes

    @property
    def type(self) -> str:
        return key_type(self.blob)

    @property
    def where(self) -> str:
        return f"{self.path}:{self.line}"

    def matches(self, name: str) -> bool:
        """Return whether the line is about `name`, as ssh's match_hostname does."""
        patterns = self.names.split(",")
        found = [one for one in patterns if _matches(one.removeprefix("!"), name)]
        return bool(found) and not any(one.startswith("!") for one in found)


def _matches(pattern: str, name: str) -> bool:
    if not pattern.startswith(_HASH_MAGIC):
        # In fnmatch `[…]` is a set of letters; here it encloses a name with a port.
        return fnmatch.fnmatchcase(name.lower(), pattern.lower().replace("[", "[[]"))
    salt_text, _, hash_text = pattern.removeprefix(_HASH_MAGIC).partition("|")
    try:
        salt, expected = base64.b64decode(salt_text), base64.b64decode(hash_text)
    except ValueError:
        return False
    return hmac.compare_digest(_name_hash(salt, name.lower()), expected)


def _name_hash(salt: bytes, name: str) -> bytes:
    return hmac.new(salt, name.encode("utf-8", "surrogateescape"), hashlib.sha1).digest()


def parse_line(path: Path, number: int, line: bytes) -> KnownKey | None:
    """Parse a line; return `None` for a comment or a line without a readable key."""
    fields = line.split()
    if not fields or fields[0].startswith(b"#"):
        return None
    marker = _MARKERS.get(fields[0], "")
    fields = fields[1:] if marker else fields
    blob = decode_key(fields[2]) if len(fields) >= 3 else None
    if blob is None or key_type(blob).encode() != fields[1]:
        return None
    return KnownKey(path, number, marker, fields[0].decode("utf-8", "surrogateescape"), blob)


def read_files(paths: Iterable[Path]) -> Iterator[KnownKey]:
    """Yield every readable line of every readable file; skip the rest, as ssh does."""
    for path in paths:
        try:
            content = path.read_bytes()
        except FileNotFoundError:
            continue
        except OSError as error:
            _LOG.warning("known_hosts file %s cannot be read: %s", path, error)
            continue
        for number, line in enumerate(content.split(b"\n"), start=1):
            known = parse_line(path, number, line)
            if known is not None:
                yield known


def format_line(name: str, blob: bytes, *, hashed: bool) -> bytes:
    """Return the line that ssh would write for a new key, its end of line included."""
    if hashed:
        salt = os.urandom(20)
        digest = base64.b64encode(_name_hash(salt, name)).decode()
        name = f"{_HASH_MAGIC}{base64.b64encode(salt).decode()}|{digest}"
    key = base64.b64encode(blob).decode()
    return f"{name} {key_type(blob)} {key}\n".encode("utf-8", "surrogateescape")


def append(path: Path, line: bytes) -> None:
    """Append a line to a known_hosts file, and keep every byte before it.

    It is one write in append mode, so that lines of two writers never mix.
    """
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    descriptor = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT, 0o600)
    try:
        size = os.fstat(descriptor).st_size
        if size:
            os.lseek(descriptor, size - 1, os.SEEK_SET)
            line = line if os.read(descriptor, 1) == b"\n" else b"\n" + line
        os.write(descriptor, line)
    finally:
        os.close(descriptor)
